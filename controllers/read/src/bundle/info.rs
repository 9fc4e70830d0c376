//! The bundle's `bundle-info.yaml`: which releases it holds and which recipe it was made from.

use std::collections::BTreeSet;

use aicr_crds::digest::Digest;
use serde::Deserialize;

use super::{RELEASE_LIMIT, WHAT};
use crate::{
    archive::{self, Files},
    error::{ReadError, quoted},
    names, yaml,
};

const INFO: &str = "bundle-info.yaml";

/// Where the recipe stands.
pub(super) const RECIPE: &str = "recipe.yaml";

/// The one deployer whose layout is read.
const DEPLOYER: &str = "helm";

pub(super) struct Info {
    pub(super) version: String,
    pub(super) releases: Vec<Row>,
    recipe: Digest,
}

/// One release, in deployment order.
#[derive(Deserialize)]
pub(super) struct Row {
    pub(super) component: String,
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) path: String,
}

#[derive(Deserialize)]
struct Document {
    metadata: Metadata,
    build: Build,
    layout: Layout,
}

#[derive(Deserialize)]
struct Metadata {
    version: String,
}

#[derive(Deserialize)]
struct Build {
    deployer: String,
    recipe: RecipeRef,
}

#[derive(Deserialize)]
struct RecipeRef {
    digest: String,
    path: Option<String>,
}

#[derive(Deserialize)]
struct Layout {
    releases: Vec<Row>,
}

impl Info {
    /// Compares the recipe with what the bundle was made from.
    pub(super) fn check_recipe(&self, bytes: &[u8]) -> Result<(), ReadError> {
        let found = Digest::of(bytes);
        if found == self.recipe {
            return Ok(());
        }
        let problem = format!("its {RECIPE} is {found}, but {INFO} says that it was made from {}", self.recipe);
        Err(ReadError::damaged(WHAT, problem))
    }
}

pub(super) fn read(files: &Files) -> Result<Info, ReadError> {
    let Some(bytes) = files.get(INFO) else {
        return Err(ReadError::unsupported(WHAT, format!("no {INFO}"), "bundles of AICR 1.0.0 and later"));
    };
    let document: Document = yaml::typed(bytes, "BundleInfo", &["aicr.run/v1"])?;
    let Build { deployer, recipe } = document.build;
    if deployer != DEPLOYER {
        let found = format!("the deployer {}", quoted(&deployer));
        return Err(ReadError::unsupported(WHAT, found, format!("the deployer {DEPLOYER}")));
    }
    if let Some(path) = recipe.path.filter(|path| path != RECIPE) {
        return Err(ReadError::unsupported(WHAT, format!("its recipe at {}", quoted(&path)), RECIPE));
    }
    let digest = recipe.digest.parse().map_err(|_| {
        ReadError::damaged(INFO, format!("build.recipe.digest is {}, no digest", quoted(&recipe.digest)))
    })?;
    check(&document.layout.releases)?;
    Ok(Info { version: document.metadata.version, releases: document.layout.releases, recipe: digest })
}

fn check(rows: &[Row]) -> Result<(), ReadError> {
    names::count(INFO, "releases", rows.len(), RELEASE_LIMIT)?;
    if rows.is_empty() {
        return Err(ReadError::damaged(INFO, "it names no release"));
    }
    let (mut ids, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for row in rows {
        names::label(INFO, "release name", &row.name, names::RELEASE)?;
        names::label(INFO, "component name", &row.component, names::LABEL)?;
        names::label(INFO, "namespace", &row.namespace, names::LABEL)?;
        if archive::safe(INFO, row.path.as_bytes())? != row.path || row.path.is_empty() {
            return Err(ReadError::damaged(INFO, format!("the path {} is not plain", quoted(&row.path))));
        }
        if !ids.insert(&row.name) {
            return Err(ReadError::damaged(INFO, format!("the release {} stands in it twice", row.name)));
        }
        if !paths.insert(&row.path) {
            return Err(ReadError::damaged(INFO, format!("two releases have the path {}", quoted(&row.path))));
        }
    }
    Ok(())
}
