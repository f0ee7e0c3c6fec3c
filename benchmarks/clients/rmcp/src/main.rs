//! A client on rmcp, the Rust SDK: rmcp-client URL, or rmcp-client -- COMMAND… for stdio.
//! It answers lines of JSON on stdin, as the clients of the tests do.
use std::error::Error;

use rmcp::{
    RoleClient, ServiceExt,
    model::CallToolRequestParams,
    service::RunningService,
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, stdin},
    process::Command,
};

type Session = RunningService<RoleClient, ()>;

async fn answer(session: &Session, line: &Value) -> Result<Value, Box<dyn Error>> {
    if line["action"] == "tools" {
        return Ok(serde_json::to_value(session.list_all_tools().await?)?);
    }
    let name = line["tool"].as_str().unwrap_or_default().to_owned();
    let given = line["given"].as_object().cloned().unwrap_or_default();
    let asked = CallToolRequestParams::new(name).with_arguments(given);
    Ok(serde_json::to_value(session.call_tool(asked).await?)?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let session: Session = if args[0] == "--" {
        let mut command = Command::new(&args[1]);
        command.args(&args[2..]);
        ().serve(TokioChildProcess::new(command)?).await?
    } else {
        ().serve(StreamableHttpClientTransport::from_uri(args[0].as_str())).await?
    };
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let said = match answer(&session, &serde_json::from_str(&line)?).await {
            Ok(result) => json!({ "result": result }),
            Err(error) => json!({ "thrown": error.to_string() }),
        };
        println!("{said}");
    }
    session.cancel().await?;
    Ok(())
}
