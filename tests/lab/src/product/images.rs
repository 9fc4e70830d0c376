//! The images of the operator and of the stand-in for AICR, made without a daemon, and the stand-in's charts.

use std::collections::BTreeMap;

use super::Product;
use crate::{Entry, Image, Lab, LabError, command};

/// Versions of the stand-in that tests use: one binary, told by its environment which version it plays.
const STAND_IN_VERSIONS: [&str; 5] = ["v1.0.0", "v1.1.2", "v1.1.3", "v1.1.4", "v1.1.5"];
/// Where the stand-in's charts are pushed and read from.
pub const CHARTS: &str = "10.245.0.1:5000/upstream";

/// References by digest of what was pushed.
#[derive(Debug, Clone)]
pub struct Pushed {
    /// The operator's image.
    pub operator: String,
    /// The stand-in's image of each version.
    pub aicr: BTreeMap<String, String>,
}

impl Product {
    /// Pushes the images and the stand-in's charts; the same content gives the same digests.
    pub fn push_all(&self, lab: &Lab) -> Result<Pushed, LabError> {
        let operator = lab.push_image(&self.operator()?)?;
        let mut aicr = BTreeMap::new();
        for version in STAND_IN_VERSIONS {
            aicr.insert(version.to_owned(), lab.push_image(&self.stand_in(version)?)?);
        }
        self.push_charts(lab)?;
        Ok(Pushed { operator, aicr })
    }

    fn operator(&self) -> Result<Image, LabError> {
        let image = Image::new(concat!("aicr-operator:", env!("CARGO_PKG_VERSION"))).with_authorities();
        let program = Entry::Program(self.binary("aicr-operator")?);
        Ok(image.entry("/aicr-operator", program).entrypoint(&["/aicr-operator"]))
    }

    /// The stand-in as one version, for tests that add faults to its environment.
    pub fn stand_in(&self, version: &str) -> Result<Image, LabError> {
        let image = Image::new(&format!("aicr:{version}")).with_authorities();
        let image = image.entry("/usr/bin/aicr", Entry::Program(self.binary("aicr")?)).entrypoint(&["/usr/bin/aicr"]);
        Ok(image.env("AICR_STANDIN_VERSION", version).env("AICR_STANDIN_CHARTS", CHARTS))
    }

    fn push_charts(&self, lab: &Lab) -> Result<(), LabError> {
        let mut charts = lab.in_ns(self.binary("aicr-standin-charts")?);
        charts.args(["--push", CHARTS, "--plain-http"]).env("DOCKER_CONFIG", lab.layout().docker_config());
        command::output(&mut charts)?;
        Ok(())
    }
}
