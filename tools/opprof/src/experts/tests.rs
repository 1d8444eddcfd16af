use base64::Engine as _;

use super::*;

/// An array of one-byte ids.
fn npy(tokens: usize, layers: usize, top_k: usize, ids: &[u8]) -> Vec<u8> {
    let mut head = format!(
        "{{'descr': '|u1', 'fortran_order': False, 'shape': ({tokens}, {layers}, {top_k}), }}"
    );
    while head.len() < 117 {
        head.push(' ');
    }
    head.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(head.bytes());
    bytes.extend(ids);
    bytes
}

fn loads(arrays: &[Vec<u8>], experts: usize) -> Result<Loads, ExpertsError> {
    let mut loads = Loads::default();
    for array in arrays {
        loads.add(&Routes::from_npy(array).unwrap(), experts)?;
    }
    Ok(loads)
}

#[test]
fn even_and_uneven_layers_have_their_figures() {
    // Layer 0: every expert once. Layer 1: always experts 0 and 1 of 4.
    let found = loads(&[npy(2, 2, 2, &[0, 1, 0, 1, 2, 3, 1, 0])], 4).unwrap();
    assert_eq!(found.layers, [vec![1, 1, 1, 1], vec![2, 2, 0, 0]]);
    let [Some(even), Some(uneven)] = found.evenness()[..] else { panic!() };
    assert!((even.entropy - 1.0).abs() < 1e-12 && even.variation == 0.0);
    assert_eq!((even.max_over_mean, even.top_k_imbalance), (1.0, 1.0));
    // Two of four: ln 2 / ln 4. Mean 1, deviations of 1.
    assert!((uneven.entropy - 0.5).abs() < 1e-12);
    assert_eq!((uneven.max_over_mean, uneven.variation, uneven.top_k_imbalance), (2.0, 1.0, 2.0));
    let mean = found.mean().unwrap();
    assert!((mean.entropy - 0.75).abs() < 1e-12, "averaged over layers, not before");
}

#[test]
fn dense_layers_are_left_out_and_a_cpus_zeros_are_refused() {
    let found = loads(&[npy(2, 2, 2, &[0, 0, 0, 1, 0, 0, 2, 3])], 4).unwrap();
    assert_eq!((found.evenness()[0], found.layers[1].clone()), (None, vec![1, 1, 1, 1]));
    let error = loads(&[npy(2, 1, 2, &[0, 0, 0, 0])], 4).unwrap_err().to_string();
    assert_eq!(
        error,
        "token 0 in layer 0 goes to experts [0, 0]: they must be distinct (all are 0: a server on a CPU \
         does not record routes)"
    );
    let error = loads(&[npy(2, 1, 2, &[0, 1, 3, 3])], 4).unwrap_err().to_string();
    assert_eq!(error, "token 1 in layer 0 goes to experts [3, 3]: they must be distinct");
}

#[test]
fn routes_of_another_model_are_refused() {
    let error = loads(&[npy(1, 1, 2, &[0, 9])], 8).unwrap_err().to_string();
    assert_eq!(error, "expert 9 in layer 0, the model has 8");
    let error = loads(&[npy(1, 1, 2, &[0, 1]), npy(1, 2, 1, &[0, 1])], 8).unwrap_err().to_string();
    assert!(error.starts_with("routes of (2, 1)"), "{error}");
}

#[test]
fn answers_of_a_real_server_are_counted() {
    let answer = include_bytes!("../../tests/fixtures/routed_experts_response.json");
    let mut found = Loads::default();
    read_answers(&answer[..], 8, &mut found).unwrap();
    assert_eq!((found.requests, found.tokens, found.top_k, found.layers.len()), (1, 14, 2, 2));
    // 14 tokens, two experts each.
    assert!(found.layers.iter().all(|counts| counts.iter().sum::<u64>() == 28));
    // Counted with NumPy from the file.
    assert_eq!(found.layers, [[9, 1, 2, 4, 4, 4, 1, 3], [1, 1, 3, 5, 4, 0, 0, 14]]);
    let text = found.render(None);
    assert!(
        text.contains("1 requests, 14 tokens, 2 layers with experts of 2, 2 experts a token"),
        "{text}"
    );
    let zeros = base64::engine::general_purpose::STANDARD.encode(npy(2, 1, 2, &[0; 4]));
    let text = format!("{{\"choices\":[{{}}]}}\n{{\"routed_experts\":\"{zeros}\"}}\n");
    let error = read_answers(text.as_bytes(), 8, &mut Loads::default()).unwrap_err().to_string();
    assert!(error.starts_with("line 2: token 0 in layer 0"), "{error}");
}

#[test]
fn a_placement_gives_loads_by_rank() {
    let found = loads(&[npy(2, 2, 2, &[0, 1, 0, 1, 2, 3, 1, 0])], 4).unwrap();
    let ranks = found.by_rank(&[vec![0, 0, 1, 1]]).unwrap();
    assert_eq!(ranks, [vec![2, 2], vec![4, 0]]);
    assert!(found.render(Some(&ranks)).contains("ranks, layer"));
    assert!(found.by_rank(&[vec![0, 1]]).unwrap_err().contains("placement of 2 experts"));
    assert!(
        found.by_rank(&[vec![], vec![], vec![]]).unwrap_err().contains("placement of 3 layers")
    );
}
