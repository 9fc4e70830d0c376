//! Flags as the chart gives them.

use clap::CommandFactory as _;

use super::*;

fn parse(more: &[&str]) -> Result<Args, clap::Error> {
    let required =
        ["aicr-operator", "--aicr-version=v1.1.2", "--aicr-image=r/aicr:1", "--registry-repository=r:5000/p"];
    Args::try_parse_from(required.iter().chain(more))
}

#[test]
fn the_flags_are_sound_and_every_one_has_a_variable() {
    Args::command().debug_assert();
    for flag in Args::command().get_arguments().filter(|flag| !matches!(flag.get_id().as_str(), "help" | "version")) {
        let expected = format!("AICR_OPERATOR_{}", flag.get_id().as_str().to_uppercase());
        assert_eq!(flag.get_env().and_then(|name| name.to_str()), Some(expected.as_str()));
    }
}

#[test]
fn repeated_flags_become_selector_and_tolerations_of_the_jobs() {
    let tolerations = r#"--jobs-toleration={"key":"gpu","operator":"Exists","effect":"NoSchedule"}"#;
    let args = parse(&["--jobs-node-selector=a=b", "--jobs-node-selector=c=", tolerations]).unwrap();
    let jobs = args.settings().jobs;
    assert_eq!(jobs.node_selector, [("a".to_owned(), "b".to_owned()), ("c".to_owned(), String::new())].into());
    assert_eq!(jobs.tolerations[0].key.as_deref(), Some("gpu"));
    assert!(parse(&["--jobs-node-selector=a"]).is_err());
    assert!(parse(&["--jobs-toleration=key"]).is_err());
}

#[test]
fn with_ecr_the_operator_keeps_the_token_and_each_run_has_a_secret_of_its_own() {
    let settings = parse(&["--registry-provider=aws"]).unwrap().settings();
    assert_eq!(settings.tokens.map(|tokens| tokens.secret).as_deref(), Some("aicr-registry"));
    assert_eq!(settings.jobs.registry_secret, RegistrySecret::OfTheRun);
    let settings = parse(&["--registry-static-secret=pull"]).unwrap().settings();
    assert!(settings.tokens.is_none());
    assert_eq!(settings.jobs.registry_secret, RegistrySecret::Kept("pull".to_owned()));
}

#[test]
fn the_snapshot_agent_is_privileged_unless_told_otherwise() {
    assert!(parse(&[]).unwrap().settings().install.agent_privileged);
    assert!(!parse(&["--snapshot-privileged=false"]).unwrap().settings().install.agent_privileged);
}

#[test]
fn whoever_is_named_may_approve_and_four_eyes_are_the_default() {
    let args = parse(&["--namespace=ns", "--approver-user=a", "--approver-user=b", "--approver-group=g h"]).unwrap();
    let settings = args.settings();
    let policy = args.policy(&settings);
    assert_eq!(policy.operator, "system:serviceaccount:ns:aicr-operator");
    assert_eq!(policy.approvers.users, ["a", "b"].map(str::to_owned).into());
    assert_eq!(policy.approvers.groups, ["g h"].map(str::to_owned).into());
    assert_eq!(policy.separation, Separation::FourEyes);
    let names = args.certificates(&settings).unwrap().names;
    assert_eq!(names.called(), "aicr-operator-webhook.ns.svc");
    let args = parse(&["--allow-self-approval", "--certificates-provider=cert-manager"]).unwrap();
    assert_eq!(args.policy(&settings).separation, Separation::SelfApproval);
    assert_eq!(args.certificates_provider, CertificatesProvider::CertManager);
    assert!(parse(&["--certificates-provider=own"]).is_err());
}
