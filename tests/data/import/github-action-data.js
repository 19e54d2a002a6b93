window.BENCHMARK_DATA = {
  "lastUpdate": 1700086400000,
  "repoUrl": "https://example.org/sums",
  "entries": {
    "Sums": [
      {
        "commit": {"id": "5f0c2f1", "message": "sum in pairs", "timestamp": "2023-11-14T22:10:00Z"},
        "date": 1700000000000,
        "tool": "customSmallerIsBetter",
        "benches": [
          {"name": "sum of 1024", "value": 20.5, "unit": "ms", "range": "± 0.3"},
          {"name": "sums", "value": 48.8, "unit": "ops/sec"}
        ]
      },
      {
        "commit": {"id": "8be19d4", "message": "sum in blocks", "timestamp": "2023-11-15T22:10:00Z"},
        "date": 1700086400000,
        "tool": "customSmallerIsBetter",
        "benches": [
          {"name": "sum of 1024", "value": 18.1, "unit": "ms", "range": "± 0.2"},
          {"name": "sums", "value": 55.2, "unit": "ops/sec"}
        ]
      }
    ]
  }
}
