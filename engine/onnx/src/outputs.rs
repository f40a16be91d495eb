//! Values inside a network as further outputs.

/// Field numbers of ONNX's protocol buffers (onnx.proto3): `ModelProto.graph`, `GraphProto.output`,
/// `ValueInfoProto.name`.
const MODEL_GRAPH: u8 = 7;
const GRAPH_OUTPUT: u8 = 12;
const VALUE_NAME: u8 = 1;

/// Bytes which, put behind a model's, give the named inner values as outputs too.
///
/// A message that comes twice in protocol buffers is one message with the fields of both, and
/// repeated fields add up. So a second `graph` that holds outputs only adds these to the first.
pub(crate) fn more_outputs(names: &[String]) -> Vec<u8> {
    if names.is_empty() {
        return Vec::new();
    }
    let outputs: Vec<u8> = names
        .iter()
        .flat_map(|name| field(GRAPH_OUTPUT, &field(VALUE_NAME, name.as_bytes())))
        .collect();
    field(MODEL_GRAPH, &outputs)
}

/// A field of bytes: tag, length, content. Field numbers here fit one byte of tag.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut left = content.len();
    while left >= 0x80 {
        bytes.push((left & 0x7f) as u8 | 0x80);
        left >>= 7;
    }
    bytes.push(left as u8);
    bytes.extend_from_slice(content);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_laid_out_as_protocol_buffers_are() {
        assert_eq!(more_outputs(&[]), [0u8; 0]);
        let expected = [58, 5, 98, 3, 10, 1, b'x'];
        assert_eq!(more_outputs(&["x".to_owned()]), expected);
        let long = field(1, &[0; 300]);
        assert_eq!(long[..3], [10, 0xac, 2]);
        assert_eq!(long.len(), 303);
    }
}
