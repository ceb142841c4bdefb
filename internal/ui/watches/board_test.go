package watches_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/ui/watches"
	"lockstep.run/lockstep/test/clustertest"
)

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// large returns packages with the given number of bytes in each field that no page shows.
func large(packages, each int) []client.Object {
	var objects []client.Object
	for i := range packages {
		pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("team-%d", i%50), Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprint(i)), Generation: 1,
			Annotations: map[string]string{"planted": strings.Repeat("a", each), corev1alpha1.PauseMessageAnnotation: "until Friday"},
		}}
		pkg.Spec.Image, pkg.Spec.Config = "registry.example.com/web:1", clustertest.Raw(`{"password":"`+strings.Repeat("p", each)+`"}`)
		pkg.Spec.Patches = []corev1alpha1.PackagePatch{{Patch: strings.Repeat("q", each)}}
		pkg.Status = clustertest.Available()
		objects = append(objects, pkg)
	}
	return objects
}

// Only the fields of a package that pages show are kept: no configuration, annotations or managed
// fields. Thousands of packages need some MiB, and their changes need no more.
func TestBoardKeepsWhatIsShown(t *testing.T) {
	const packages, most = 2000, 16 << 20
	cl := clustertest.FakeCluster(t, large(packages, 16<<10)...)
	before := heap()
	begin := time.Now()
	board := watches.Start(t.Context(), cl)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	board.Synced(ctx)
	changed, end := board.Subscribe()
	defer end()
	for len(board.Rows()) < packages && ctx.Err() == nil {
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	took := time.Since(begin)
	kept := heap() - before
	t.Logf("%d packages: %d KiB, after %s", packages, kept>>10, took)
	if len(board.Rows()) != packages || kept > most {
		t.Errorf("%d rows, %d bytes", len(board.Rows()), kept)
	}
	pkg := board.Package(progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "team-0", Name: "web-0"})
	if pkg == nil || pkg.PackageSpec().Config != nil || pkg.PackageSpec().Patches != nil || len(pkg.GetManagedFields()) > 0 ||
		len(pkg.GetAnnotations()) != 1 || pkg.GetAnnotations()[corev1alpha1.PauseMessageAnnotation] == "" {
		t.Errorf("kept is %v", pkg)
	}
	runtime.KeepAlive(board)
}
