//! A shared folder and a bucket.

use engine_base::{CancelToken, Code, ContentHash};
use flow_cluster::artifacts::{ArtifactOptions, Origin, S3Options, SharedStore};

use crate::bucket::Bucket;
use crate::relay::{Relay, Trouble};
use crate::support::{Place, bytes, quick};

fn with(shared: SharedStore) -> ArtifactOptions {
    ArtifactOptions {
        shared: Some(shared),
        ..quick()
    }
}

/// Puts `content` into the shared store from one place, and fetches it from there in another.
async fn there_and_back(shared: &SharedStore, content: &[u8]) {
    let (from, to) = (Place::new(), Place::new());
    let temp = from.own_store().temp("bin").unwrap();
    std::fs::write(&temp, content).unwrap();
    let hash = from.own_store().adopt(&temp, "").unwrap().hash;
    let sender = from.artifacts(with(shared.clone()));
    sender.publish(&hash).await.unwrap();
    // A second time nothing is sent.
    sender.publish(&hash).await.unwrap();
    let receiver = to.artifacts(with(shared.clone()));
    let length = content.len() as u64;
    let fetched = receiver
        .fetch(&hash, length, &[], &CancelToken::new())
        .await
        .unwrap();
    assert_eq!(fetched.from, Some(Origin::Shared));
    assert_eq!(std::fs::read(&fetched.path).unwrap(), content);
}

#[tokio::test]
async fn a_shared_folder_works() {
    let place = Place::new();
    let shared = SharedStore::folder(place.folder()).unwrap();
    there_and_back(&shared, &bytes(1000, 30)).await;
    there_and_back(&shared, &bytes(20 << 20, 31)).await;
    assert!(SharedStore::folder(&place.folder().join("not there")).is_err());
}

#[tokio::test]
async fn a_bucket_works_whole_and_in_parts() {
    let bucket = Bucket::start().await;
    let options = S3Options {
        endpoint: bucket.url.clone(),
        bucket: "films".to_owned(),
        prefix: "cluster/".to_owned(),
        region: "any".to_owned(),
        access_key_id: "id".to_owned(),
        secret_access_key: "s3cret".to_owned(),
        allow_http: true,
    };
    assert!(!format!("{options:?}").contains("s3cret"));
    let shared = SharedStore::s3(&options).unwrap();
    let small = bytes(1000, 32);
    there_and_back(&shared, &small).await;
    there_and_back(&shared, &bytes(20 << 20, 33)).await;
    let hex = ContentHash::of(&small).to_hex();
    let name = format!("/films/cluster/{}/{hex}", &hex[..2]);
    assert_eq!(bucket.object(&name), Some(small));
    // In parts, so that nothing has to be in memory whole.
    assert_eq!(bucket.parts(), 3);
}

#[tokio::test]
async fn the_shared_store_is_asked_after_the_holders_and_found_out_when_it_is_wrong() {
    let place = Place::new();
    let content = bytes(50_000, 34);
    let (hash, holder) = place.holder("one", &content).await;
    let folder = place.folder().join("shared");
    let hex = hash.to_hex();
    std::fs::create_dir_all(folder.join(&hex[..2])).unwrap();
    let mut wrong = content.clone();
    wrong[25_000] ^= 1;
    std::fs::write(folder.join(&hex[..2]).join(&hex), &wrong).unwrap();
    let artifacts = place.artifacts(with(SharedStore::folder(&folder).unwrap()));
    let cancel = CancelToken::new();
    let error = artifacts
        .fetch(&hash, 50_000, &[], &cancel)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Corrupt);
    assert_eq!(error.corrupt()[0].from, Origin::Shared);
    // A holder that is cut off half way is gone on with at the wrong place, which is found out.
    let relay = Relay::before(&holder, Trouble::DieAfter(20_000)).await;
    let cut = [relay.holder(&holder)];
    assert!(artifacts.fetch(&hash, 50_000, &cut, &cancel).await.is_err());
    let fetched = artifacts
        .fetch(&hash, 50_000, &[holder], &cancel)
        .await
        .unwrap();
    assert_eq!(std::fs::read(&fetched.path).unwrap(), content);
}
