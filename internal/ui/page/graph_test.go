package page_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/graph"
	"lockstep.run/lockstep/internal/ui/page"
)

func TestGraphGolden(t *testing.T) {
	t.Parallel()
	g := graph.Of(shop())
	golden(t, "graph", page.GraphOf(frame(), g, ""))
	golden(t, "graph-around", page.GraphOf(frame(), g, "packages/shop/web"))
}

// A drawing has at most so many boxes, whatever is installed: the nearest of a package, else namespaces.
func TestDrawingsAreBounded(t *testing.T) {
	t.Parallel()
	all := []corev1alpha1.GenericPackage{pkg("", "operator", "1.0.0")}
	for i := range 5000 {
		all = append(all, pkg(fmt.Sprintf("team-%03d", i%200), fmt.Sprintf("service-%04d", i), "1.0.0",
			dependsOn("operator", "", "operator", ">=1", true), dependsOn("next", fmt.Sprintf("team-%03d", (i+1)%200), fmt.Sprintf("service-%04d", (i+1)%5000), ">=1", i%7 > 0)))
	}
	g := graph.Of(all)
	for name, around := range map[string]string{"all": "", "operator": "clusterpackages/operator", "service": "packages/team-001/service-0001"} {
		begin := time.Now()
		got := text(t, page.GraphOf(frame(), g, around))
		t.Logf("%s: %d bytes in %s", name, len(got), time.Since(begin))
		if n := strings.Count(got, "<rect width="); n < 3 || n > page.GraphNodes || len(got) > 512<<10 {
			t.Errorf("%s: %d boxes, %d bytes", name, n, len(got))
		}
		if again := text(t, page.GraphOf(frame(), g, around)); again != got {
			t.Errorf("%s: the second drawing is another one", name)
		}
	}
}
