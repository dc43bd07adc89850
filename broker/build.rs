//! Makes the Kafka message types of `src/kafka/codec/schema.txt`.

#[path = "build/generate.rs"]
mod generate;
#[path = "build/samples.rs"]
mod samples;
#[path = "build/schema.rs"]
mod schema;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

const SCHEMA: &str = "src/kafka/codec/schema.txt";

fn main() -> Result<(), Box<dyn Error>> {
    for path in [SCHEMA, "build.rs", "build"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let messages = schema::parse(&fs::read_to_string(SCHEMA)?)?;
    let out = env::var("OUT_DIR")?;
    fs::write(Path::new(&out).join("messages.rs"), generate::messages(&messages)?)?;
    fs::write(Path::new(&out).join("samples.rs"), samples::samples(&messages)?)?;
    Ok(())
}
