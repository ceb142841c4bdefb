package versions

import (
	"fmt"
	"testing"
)

// BenchmarkSelect chooses among 100,000 versions, for a platform.
func BenchmarkSelect(b *testing.B) {
	many := make([]Candidate, 100_000)
	for i := range many {
		many[i] = Candidate{Version: fmt.Sprintf("%d.%d.%d", i%10, i/1000, i%1000), Constraints: on("Kubernetes", fmt.Sprintf(">=1.%d", i%40))}
	}
	for _, constraint := range []string{"", ">=1.2, <9", ">=100", "1.x || 2.x || 3.x || 100.x"} {
		b.Run(fmt.Sprintf("constraint=%q", constraint), func(b *testing.B) {
			for b.Loop() {
				Select(many, Request{Selection: within(constraint), Platform: Platform{Kubernetes: "v1.31.2"}})
			}
		})
	}
}
