package migrate_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/test/clitest"
)

// With -o json, programs read how the handover of the engine ended.
func TestEngineJSON(t *testing.T) {
	t.Parallel()
	unreachable := func(genericclioptions.RESTClientGetter, io.Writer) (*cluster.Cluster, error) {
		return nil, errors.New("no cluster")
	}
	got := clitest.InvokeOn(t, unreachable, "", "adopt-engine", "-o", "json")
	if got.Code != 1 || !strings.Contains(got.Out, `"type":"end","succeeded":false,"error":"no cluster`) {
		t.Errorf("%+v", got)
	}
	if got := clitest.Invoke(t, "", "release-engine", "-o", "yaml"); got.Code != 1 || !strings.Contains(got.Err, `unknown output format "yaml": choose json`) {
		t.Errorf("%+v", got)
	}
}
