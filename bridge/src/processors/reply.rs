//! How a request is answered: the parts every processor shares.

use std::fmt;

use crate::backend::BackendError;
use crate::dispatch::Answer;
use crate::remoting::{ExtFields, FieldError, RemotingCommand, SerializeType};
use crate::response_code::ResponseCode;

/// What of a request its answer needs; outlives the request, which a held pull does not keep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    opaque: i32,
    serialize: SerializeType,
    is_one_way: bool,
}

impl Reply {
    pub(crate) fn to(request: &RemotingCommand) -> Self {
        let is_one_way = request.is_one_way();
        Self { opaque: request.opaque, serialize: request.serialize, is_one_way }
    }

    pub(crate) fn is_one_way(self) -> bool {
        self.is_one_way
    }

    /// What is written to the client; nothing for a one-way request.
    pub(crate) fn finish<A: Into<Answer>>(
        self,
        request_code: i32,
        outcome: Result<A, Refusal>,
    ) -> Option<Answer> {
        let answer = outcome.map_or_else(
            |refusal| {
                tracing::debug!(request_code, opaque = self.opaque, %refusal, "request refused");
                self.refuse(refusal).into()
            },
            Into::into,
        );
        (!self.is_one_way).then_some(answer)
    }

    /// An answer without fields and body.
    pub(crate) fn code(self, code: ResponseCode) -> RemotingCommand {
        RemotingCommand::request(0, self.opaque, self.serialize).response(code)
    }

    /// As [`Self::code`], with room for that many fields and bytes of their names and values.
    pub(crate) fn with_room(
        self,
        code: ResponseCode,
        fields: usize,
        bytes: usize,
    ) -> RemotingCommand {
        let mut answer = self.code(code);
        answer.ext_fields = ExtFields::with_capacity(fields, bytes);
        answer
    }

    /// "Done".
    pub(crate) fn ok(self) -> RemotingCommand {
        self.code(ResponseCode::SUCCESS)
    }

    pub(crate) fn refuse(self, refusal: Refusal) -> RemotingCommand {
        let mut answer = self.code(refusal.code).with_remark(refusal.remark);
        for (name, value) in &refusal.fields {
            answer.ext_fields.push(name, value);
        }
        answer
    }
}

/// Why a request is not served. It has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    code: ResponseCode,
    remark: String,
    fields: Vec<(&'static str, String)>,
}

impl Refusal {
    pub(crate) fn new(code: ResponseCode, remark: impl Into<String>) -> Self {
        Self { code, remark: remark.into(), fields: Vec::new() }
    }

    /// With a field in the answer.
    pub(crate) fn with_field(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.remark)
    }
}

impl From<FieldError> for Refusal {
    fn from(error: FieldError) -> Self {
        Self::new(ResponseCode::SYSTEM_ERROR, error.to_string())
    }
}

impl From<BackendError> for Refusal {
    fn from(error: BackendError) -> Self {
        Self::new(ResponseCode::from(&error), error.to_string())
    }
}

/// The result of most processors.
pub(crate) type Outcome = Result<RemotingCommand, Refusal>;
