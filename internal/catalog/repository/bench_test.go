package repository_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/test/require"
)

// carvelTree is a repository with packages of versions each, a document of some 700 bytes for each.
func carvelTree(packages, versions int) map[string][]byte {
	files := map[string][]byte{}
	for p := range packages {
		var b strings.Builder
		for v := range versions {
			b.WriteString("---\n" + carvel("shop.example.com", fmt.Sprintf("shop%d.example.com", p), "1.0.0", fmt.Sprintf("1.%d.0", v), "  template:",
				fmt.Sprintf("  releaseNotes: Notes on version %d.\n  valuesSchema: {openAPIv3: {title: Values of %d, properties: {replicas: {type: integer, default: 1}, host: {type: string}}}}\n  template:", v, v)))
		}
		files[fmt.Sprintf("packages/shop%d.yaml", p)] = []byte(b.String())
	}
	return files
}

func entryTree() map[string][]byte {
	files := map[string][]byte{}
	for i := range 100 {
		files[fmt.Sprintf("%d.yaml", i)] = entryOf1000(i, "")
	}
	return files
}

func BenchmarkRead(b *testing.B) {
	for name, files := range map[string]map[string][]byte{
		"carvel/1000x20": carvelTree(1000, 20), "carvel/1000x100": carvelTree(1000, 100), "carvel/20x5000": carvelTree(20, 5000), "entries/1x100000": entryTree(),
	} {
		b.Run(name, func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for b.Loop() {
				content, err := repository.Read(files)
				require.NoError(b, err)
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB-kept")
				runtime.KeepAlive(content)
			}
		})
	}
}

func BenchmarkMerge(b *testing.B) {
	content, err := repository.Read(carvelTree(1000, 20))
	require.NoError(b, err)
	large, err := repository.Read(entryTree())
	require.NoError(b, err)
	for name, offers := range map[string][]repository.Offer{
		"1000x20":   {{Repository: "a", Content: content}},
		"2x1000x20": {{Repository: "a", Content: content}, {Repository: "b", Content: content}},
		"1x100000":  {{Repository: "a", Content: large}},
	} {
		b.Run(name, func(b *testing.B) {
			existing, _ := repository.Merge(offers, nil)
			for b.Loop() {
				repository.Merge(offers, existing)
			}
		})
	}
}
