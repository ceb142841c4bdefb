package operate

import (
	"encoding/json"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// Objects follow the screen in the format of clustertree. Programs get them only on request.
func TestStatusWithObjects(t *testing.T) {
	t.Parallel()
	o := progress.ScreenOptions{Styles: terminal.Plain()}
	r := statusReport{Report: progress.Report{Kind: "Package", Namespace: "shop", Name: "web", Summary: progress.SummaryStalled}}
	plain := r.text(o)
	if data, err := json.Marshal(r); err != nil || strings.Contains(string(data), `"objects"`) {
		t.Errorf("got %s, %v", data, err)
	}
	r.Objects = &clusterTree{Kind: "Package", Namespace: "shop", Name: "web", Revision: 3, Phases: []treePhase{{Name: "deploy"}}}
	want := plain + "\n" + r.Objects.draw(o.Styles)
	if got := r.text(o); got != want || !strings.Contains(got, "deploy") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	data, err := json.Marshal(r)
	var read struct {
		Summary string
		Objects clusterTree
	}
	if err != nil || json.Unmarshal(data, &read) != nil || read.Summary != "Stalled" || read.Objects.Revision != 3 {
		t.Errorf("got %s, %v", data, err)
	}
}
