package measure

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShares(t *testing.T) {
	t.Parallel()
	const traces = `File: lockstep-manager
Duration: 10s, Total samples = 40ms ( 0.4%)
-----------+-------------------------------------------------------
      10ms   runtime.scanObject
             runtime.gcBgMarkWorker
-----------+-------------------------------------------------------
      20ms   encoding/json.checkValid
             encoding/json.Unmarshal
             lockstep.run/lockstep/internal/cluster/apply.(*Writer).Apply
-----------+-------------------------------------------------------
      10ms   runtime.futex
             runtime.schedule (inline)
-----------+-------------------------------------------------------
`
	got, err := sharesOf(traces)
	if err != nil {
		t.Fatal(err)
	}
	want := []ProfileShare{{"decode answers", 0.5}, {"collect garbage", 0.25}, {otherWork, 0.25}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := sharesOf("-----------+---\n much f\n"); err == nil {
		t.Error("a stack without a time is no error")
	}
}
