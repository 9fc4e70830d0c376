//! One question to the API server, bounded, with its failure in our words.

use std::future::Future;

use crate::{error::DriveError, write::CALL_LIMIT};

/// Waits for an answer for as long as one call may take, which is 30 s.
pub(super) async fn asked<T>(act: String, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, DriveError> {
    match tokio::time::timeout(CALL_LIMIT, call).await {
        Err(_) => Err(DriveError::Timeout { act, seconds: CALL_LIMIT.as_secs() }),
        Ok(answer) => answer.map_err(|source| DriveError::Api { act, source: Box::new(source) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_never_answers_is_waited_for_half_a_minute() {
        let begun = tokio::time::Instant::now();
        let never = std::future::pending::<Result<(), kube::Error>>();
        let error = asked("list Pods".to_owned(), never).await.unwrap_err();
        assert_eq!(error.to_string(), "list Pods: no answer within 30 s");
        assert_eq!(begun.elapsed(), CALL_LIMIT);
    }
}
