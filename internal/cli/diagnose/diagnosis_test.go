package diagnose_test

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/cli/diagnose"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/test/require"
)

// The state of a package is printed in the words of status.
func TestDiagnosisText(t *testing.T) {
	t.Parallel()
	for state, want := range map[summary.Summary]string{
		summary.ImagePullError: "package shop/web: image cannot be pulled, phase deploy waits\nCause  it is so\\u001b\n",
		summary.Progressing:    "package shop/web: rolling out, phase deploy waits\n",
		summary.Pending:        "package shop/web: pending, phase deploy waits\n",
	} {
		d := &diagnose.Diagnosis{Summary: state, Phase: "deploy", Reason: diagnose.ReasonPackage, Cause: "it is so\x1b"}
		if got := d.Text("package shop/web", terminal.Plain()); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", state, got)
		}
	}
	fine := &diagnose.Diagnosis{Summary: summary.Available, Reason: diagnose.ReasonNone, Cause: "everything is as the spec asks for"}
	require.Equal(t, "package shop/web: available, everything is as the spec asks for\n", fine.Text("package shop/web", terminal.Plain()))
}
