//! Flags about the endpoint, the same in every command that talks to one.

use std::path::PathBuf;

use clap::Args;

/// Where requests go and what each one says.
#[derive(Debug, Args)]
#[command(next_help_heading = "Endpoint")]
pub(crate) struct EndpointArgs {
    /// Address of the server, with or without /v1; repeat it for several, used in turn
    #[arg(long, value_name = "URL")]
    pub(crate) url: Vec<String>,
    /// openai-chat (the default), openai-completions, openai-responses, openai-embeddings,
    /// sglang-generate or raw
    #[arg(long, value_name = "API")]
    pub(crate) api: Option<String>,
    /// The model that requests name
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// A header of every request; may be repeated
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// Environment variable that holds the API key
    #[arg(long, value_name = "VAR")]
    pub(crate) api_key_env: Option<String>,
    /// File that holds the API key, on its only line
    #[arg(long, value_name = "FILE", conflicts_with = "api_key_env")]
    pub(crate) api_key_file: Option<PathBuf>,
    /// PEM file of certificates that https:// addresses must be issued by [default: the system's]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) cacert: Option<PathBuf>,
    /// PEM file of a client certificate
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// PEM file of its key
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Check no certificate: whoever answers is believed
    #[arg(long)]
    pub(crate) insecure: bool,
    /// JSON object of parameters for every request; they override those of endpoint and dataset
    #[arg(long, value_name = "JSON")]
    pub(crate) extra_body: Option<String>,
}
