package operate_test

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/cli/diagnose"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/golden"
)

func TestExplainArguments(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"package/web and --cluster contradict each other": {"package/web", "--cluster"},
		"unknown flag: --config":                          {"package/web", "--config", "x"},
		`unknown output format "xml"`:                     {"web", "-o", "xml"},
	} {
		if got := clitest.Invoke(t, "", append([]string{"explain"}, args...)...); got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, want) {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	needed := clustertest.FakeCluster(t, installedWith("shop", "front", "db"), installedWith("shop", "front.db"), installedWith("", "certs"))
	golden.JSON(t, "deps", clitest.InvokeOn(t, clustertest.DialTo(needed), "", "deps", "-o", "json", "front").Out)
	c := clustertest.FakeCluster(t, clustertest.Installed(clustertest.Blocked()))
	golden.JSON(t, "status", clitest.InvokeOn(t, clustertest.DialTo(c), "", "status", "web", "-o", "json").Out)
	golden.JSON(t, "explain", diagnose.Diagnosis{
		Kind: "Package", Namespace: "shop", Name: "web", Summary: progress.SummaryStalled, Phase: "deploy", Object: "Deployment shop/web", Reason: diagnose.ReasonQuota,
		Cause: "a quota", Remedy: "raise it", Chain: []diagnose.Link{{Object: "Deployment shop/web", State: "waits", Message: "no replicas", Depth: 1}},
	})
}
