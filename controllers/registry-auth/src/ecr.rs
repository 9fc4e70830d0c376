//! `GetAuthorizationToken`, with whatever identity the process has at that moment.

use aicr_drive::{Mint, NoToken, Token};
use aws_config::{BehaviorVersion, Region, retry::RetryConfig, timeout::TimeoutConfig};
use aws_sdk_ecr::primitives::DateTime;
use futures::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;

use crate::said::said;

/// How long one try may take; the SDK makes up to three.
const TRY_LIMIT: std::time::Duration = std::time::Duration::from_secs(15);
const TRIES: u32 = 3;

/// The ECR of one registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ecr {
    region: Option<String>,
}

impl Ecr {
    /// The ECR that `host[:port]/prefix` lies in. Where the host does not name a region, the environment does.
    pub fn of(repository: &str) -> Self {
        let host = repository.split(['/', ':']).next().unwrap_or_default();
        Self { region: region(host) }
    }

    async fn fetch(&self) -> Result<Token, NoToken> {
        // A chain of its own for each token: the files of IRSA and Pod Identity are read again, whenever rotated.
        let mut chain = aws_config::defaults(BehaviorVersion::latest())
            .retry_config(RetryConfig::standard().with_max_attempts(TRIES))
            .timeout_config(TimeoutConfig::builder().operation_attempt_timeout(TRY_LIMIT).build());
        if let Some(region) = &self.region {
            chain = chain.region(Region::new(region.clone()));
        }
        let client = aws_sdk_ecr::Client::new(&Box::pin(chain.load()).await);
        let answer = Box::pin(client.get_authorization_token().send()).await.map_err(|error| NoToken(said(&error)))?;
        let first = answer.authorization_data().first();
        let Some((data, expires)) =
            first.and_then(|first| first.authorization_token().zip(first.expires_at().map(DateTime::secs)))
        else {
            return Err(NoToken("ECR answered without a token, or without its expiry".to_owned()));
        };
        let expires = Timestamp::from_second(expires)
            .map_err(|_| NoToken("ECR answered with an expiry that is no time".to_owned()))?;
        Token::from_authorization(data, expires).map_err(|error| NoToken(error.to_string()))
    }
}

impl Mint for Ecr {
    fn mint(&self) -> BoxFuture<'_, Result<Token, NoToken>> {
        self.fetch().boxed()
    }
}

/// The region of `<account>.dkr.ecr[-fips].<region>.amazonaws.com[.cn]` or `<account>.dkr-ecr[-fips].<region>.on.aws`.
fn region(host: &str) -> Option<String> {
    let labels: Vec<&str> = host.split('.').collect();
    match labels.as_slice() {
        [_, "dkr", "ecr" | "ecr-fips", region, "amazonaws", "com"]
        | [_, "dkr", "ecr" | "ecr-fips", region, "amazonaws", "com", "cn"]
        | [_, "dkr-ecr" | "dkr-ecr-fips", region, "on", "aws"] => Some((*region).to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_names_its_region_where_it_is_one_of_ecr() {
        for (repository, region) in [
            ("123456789012.dkr.ecr.us-east-1.amazonaws.com/aicr/a", Some("us-east-1")),
            ("123456789012.dkr.ecr-fips.us-gov-west-1.amazonaws.com/aicr", Some("us-gov-west-1")),
            ("123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn/aicr", Some("cn-north-1")),
            ("123456789012.dkr-ecr.eu-west-1.on.aws/aicr", Some("eu-west-1")),
            ("registry.example.com:5000/aicr", None),
            ("ecr.us-east-1.amazonaws.com/aicr", None),
            ("public.ecr.aws/aicr", None),
        ] {
            assert_eq!(Ecr::of(repository).region.as_deref(), region, "{repository}");
        }
    }
}
