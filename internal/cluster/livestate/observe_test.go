package livestate

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// An object that Observe panics over is known by its metadata, and named in the log
// without what the panic quotes of it (invariant 8).
func TestPanicOverALiveObject(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	c := &Cache{options: Options{
		Names: apinames.Default,
		Log:   funcr.New(func(_, args string) { logged.WriteString(args) }, funcr.Options{}),
		Observe: func(_ objects.Key, live *unstructured.Unstructured) *objects.Observed {
			panic(live.Object["data"])
		},
	}}
	live := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"generation": int64(7)}, "data": "hunter2"}}
	if obs := c.observe(objects.Key{Kind: "Secret", Namespace: "n", Name: "a"}, live); obs == nil || obs.Generation != 7 {
		t.Errorf("it is known as %+v", obs)
	}
	if text := logged.String(); strings.Contains(text, "hunter2") || !strings.Contains(text, "Secret n/a") {
		t.Errorf("the log says %s", text)
	}
}
