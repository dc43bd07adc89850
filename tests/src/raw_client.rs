//! Connections that speak raw frames of both protocols, well formed or not.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use serde_json::Value;

/// Longest frame a test accepts, so that a broken length cannot take the memory.
const FRAME_BYTES_MAX: usize = 256 << 20;
const CLIENT_ID: &str = "raw";

/// One TCP connection to a listener, with a limit on every read and write.
pub struct Connection {
    stream: TcpStream,
    next_id: i32,
}

impl Connection {
    /// Connects to `host:port`; afterwards each read and write fails after `limit`.
    pub fn open(address: &str, limit: Duration) -> anyhow::Result<Self> {
        let target = address.parse().with_context(|| format!("address {address}"))?;
        let stream = TcpStream::connect_timeout(&target, limit)?;
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, next_id: 1 })
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Sends `payload` behind its length in four big-endian bytes, as both protocols frame.
    pub fn send_frame(&mut self, payload: &[u8]) -> anyhow::Result<()> {
        let mut frame = BytesMut::with_capacity(4 + payload.len());
        frame.put_u32(u32::try_from(payload.len())?);
        frame.put_slice(payload);
        self.send(&frame)
    }

    /// The next frame without its length.
    pub fn receive_frame(&mut self) -> anyhow::Result<Bytes> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).context("the length of a frame")?;
        let length = usize::try_from(u32::from_be_bytes(length))?;
        ensure!(length <= FRAME_BYTES_MAX, "a frame of {length} bytes");
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).context("the rest of a frame")?;
        Ok(payload.into())
    }

    /// Whether the other side closes the connection (cleanly or by reset) before it sends anything.
    pub fn closed_by_peer(&mut self) -> anyhow::Result<bool> {
        match self.stream.read(&mut [0]) {
            Ok(read) => Ok(read == 0),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the sending half, as a client that dies in the middle of a frame.
    pub fn stop_sending(&mut self) -> anyhow::Result<()> {
        Ok(self.stream.shutdown(Shutdown::Write)?)
    }

    /// One Kafka request and its response.
    pub fn kafka<R: Request>(&mut self, version: i16, request: &R) -> anyhow::Result<R::Response> {
        let sent = self.send_kafka(version, request)?;
        let (correlation_id, response) = self.receive_kafka::<R>(version)?;
        ensure!(correlation_id == sent, "answer to request {correlation_id} instead of {sent}");
        Ok(response)
    }

    /// The next Kafka response, to a request of type `R` sent with `version`, behind its correlation id.
    pub fn receive_kafka<R: Request>(
        &mut self,
        version: i16,
    ) -> anyhow::Result<(i32, R::Response)> {
        let mut frame = self.receive_frame()?;
        let header = ResponseHeader::decode(&mut frame, R::Response::header_version(version))?;
        let response = R::Response::decode(&mut frame, version)?;
        ensure!(!frame.has_remaining(), "{} bytes behind the response", frame.remaining());
        Ok((header.correlation_id, response))
    }

    /// Sends one Kafka request and gives its correlation id.
    pub fn send_kafka<R: Request>(&mut self, version: i16, request: &R) -> anyhow::Result<i32> {
        let correlation_id = self.next_id();
        let mut frame = BytesMut::new();
        RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(correlation_id)
            .with_client_id(Some(StrBytes::from_static_str(CLIENT_ID)))
            .encode(&mut frame, R::header_version(version))?;
        request.encode(&mut frame, version)?;
        self.send_frame(&frame)?;
        Ok(correlation_id)
    }

    /// One RocketMQ remoting request with a JSON header, and its response.
    pub fn remoting(
        &mut self,
        code: i32,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> anyhow::Result<RemotingFrame> {
        let opaque = self.next_id();
        self.send_frame(&RemotingFrame::request(code, opaque, fields, body).payload())?;
        loop {
            let answer = RemotingFrame::parse(self.receive_frame()?)?;
            // A broker may send its own requests (flag bit 0 unset) at any time.
            if answer.number("flag")? & 1 == 1 {
                ensure!(answer.number("opaque")? == i64::from(opaque), "answer {answer:?}");
                return Ok(answer);
            }
        }
    }

    fn next_id(&mut self) -> i32 {
        self.next_id += 1;
        self.next_id
    }
}

/// One RocketMQ remoting frame with a JSON header.
#[derive(Debug)]
pub struct RemotingFrame {
    /// The whole header object.
    pub header: Value,
    /// The bytes behind the header.
    pub body: Bytes,
}

impl RemotingFrame {
    /// A request as the Java client of version 5.5.0 writes it.
    pub fn request(code: i32, opaque: i32, fields: &[(&str, &str)], body: &[u8]) -> Self {
        let fields: serde_json::Map<String, Value> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        let header = serde_json::json!({
            "code": code, "language": "JAVA", "version": 513, "opaque": opaque, "flag": 0,
            "serializeTypeCurrentRPC": "JSON", "extFields": fields,
        });
        Self { header, body: Bytes::copy_from_slice(body) }
    }

    /// The frame without its total length: header length (upper byte 0 = JSON), header, body.
    pub fn payload(&self) -> Bytes {
        let header = self.header.to_string();
        let mut payload = BytesMut::with_capacity(4 + header.len() + self.body.len());
        payload.put_u32(u32::try_from(header.len()).expect("a header below 4 GiB"));
        payload.put_slice(header.as_bytes());
        payload.put_slice(&self.body);
        payload.freeze()
    }

    /// Takes a frame without its total length apart.
    pub fn parse(mut payload: Bytes) -> anyhow::Result<Self> {
        ensure!(payload.remaining() >= 4, "a frame of {} bytes", payload.remaining());
        let length = payload.get_u32();
        ensure!(length >> 24 == 0, "header kind {}, not JSON", length >> 24);
        let length = usize::try_from(length)?;
        ensure!(length <= payload.remaining(), "header of {length} bytes in a shorter frame");
        let header = serde_json::from_slice(&payload.split_to(length))?;
        Ok(Self { header, body: payload })
    }

    /// The response code.
    pub fn code(&self) -> anyhow::Result<i64> {
        self.number("code")
    }

    /// The remark, empty when there is none.
    pub fn remark(&self) -> &str {
        self.header["remark"].as_str().unwrap_or_default()
    }

    /// A field of `extFields`.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.header["extFields"][name].as_str()
    }

    fn number(&self, name: &str) -> anyhow::Result<i64> {
        self.header[name].as_i64().with_context(|| format!("{name} in {}", self.header))
    }
}
