package page_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/ui/page"
	"lockstep.run/lockstep/test/golden"
	"lockstep.run/lockstep/test/require"
)

var now = time.Date(2026, 11, 26, 14, 0, 0, 0, time.UTC)

func frame(notes ...string) page.Frame {
	return page.Frame{Base: "/base/", Cluster: "https://api.shop.example.com:6443", Notes: notes, Now: now}
}

type option func(corev1alpha1.GenericPackage)

// pkg is a package that is available.
func pkg(namespace, name, version string, options ...option) corev1alpha1.GenericPackage {
	p := corev1alpha1.ScopeOf(namespace).NewPackage()
	p.SetNamespace(namespace)
	p.SetName(name)
	p.SetUID(types.UID(namespace + "/" + name))
	p.SetGeneration(1)
	p.SetFinalizers([]string{corev1alpha1.MetricsFinalizer})
	p.SetCreationTimestamp(metav1.NewTime(now.Add(-12*24*time.Hour - 3*time.Hour)))
	p.PackageSpec().Image = "registry.example.com/" + name + ":v" + version
	p.PackageSpec().Config = &runtime.RawExtension{Raw: []byte(`{"password":"planted-value"}`)}
	s := p.PackageStatus()
	s.ObservedGeneration, s.Revision = 1, 3
	s.Resolved = &corev1alpha1.ResolvedPackage{
		PackageName: name + ".example.com", Version: version, Image: p.PackageSpec().Image, Digest: "sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a",
		Images: []corev1alpha1.PackageImage{{Name: "server", Image: "registry.example.com/" + name + "-server:" + version, Digest: "sha256:dbc1b4c900ffe48d575b5da5c638040125f65db0fe3e24494b76ea986457d986"}},
	}
	for _, phase := range []string{"namespace", "crds", "deploy", "publish"} {
		s.Phases = append(s.Phases, corev1alpha1.PhaseStatus{Name: phase, State: corev1alpha1.PhaseStateReady, Ready: 3, Total: 3})
	}
	condition("Unpacked", "True", "UnpackSuccess", "")(p)
	condition("Progressing", "False", "Idle", "Everything was rolled out.")(p)
	condition("Available", "True", "Available", "Everything is available.")(p)
	condition("Ready", "True", "Ready", "Everything is as the spec asks for.")(p)
	for _, o := range options {
		o(p)
	}
	return p
}

func condition(typ string, status metav1.ConditionStatus, reason, message string) option {
	return func(p corev1alpha1.GenericPackage) {
		conds := p.StatusConditions()
		c := metav1.Condition{
			Type: typ, Status: status, Reason: reason, Message: message, ObservedGeneration: p.GetGeneration(), LastTransitionTime: metav1.NewTime(now.Add(-7 * time.Minute)),
		}
		for i := range *conds {
			if (*conds)[i].Type == typ {
				(*conds)[i] = c
				return
			}
		}
		*conds = append(*conds, c)
	}
}

func phases(states ...corev1alpha1.PhaseState) option {
	return func(p corev1alpha1.GenericPackage) {
		for i, state := range states {
			ph := &p.PackageStatus().Phases[i]
			ph.State = state
			switch state {
			case corev1alpha1.PhaseStateReady:
			case corev1alpha1.PhaseStateWaiting:
				ph.Ready = 0
			default:
				ph.Ready = 1
			}
		}
	}
}

func blocking(phase, group, kind, name, message string) option {
	return func(p corev1alpha1.GenericPackage) {
		p.PackageStatus().Blocking = append(p.PackageStatus().Blocking, corev1alpha1.BlockingObject{
			Group: group, Kind: kind, Namespace: p.GetNamespace(), Name: name, Phase: phase, Message: message,
		})
	}
}

func dependsOn(name, namespace, to, wants string, satisfied bool) option {
	return func(p corev1alpha1.GenericPackage) {
		d := corev1alpha1.DependencyStatus{Version: "1.4.0", PackageRef: &corev1alpha1.DependencyReference{
			Kind: corev1alpha1.ScopeOf(namespace).Kind("Package"), Namespace: namespace, Name: to,
		}}
		d.Name, d.Package = name, &corev1alpha1.DependencyPackage{Name: to + ".example.com"}
		d.Package.Version = wants
		c := metav1.Condition{Type: corev1alpha1.ConditionSatisfied, Status: "True", Reason: "Satisfied"}
		if !satisfied {
			c.Status, c.Reason, c.Message = "False", corev1alpha1.ReasonNotAvailable, "package "+namespace+"/"+to+" is not available yet."
		}
		d.Conditions = []metav1.Condition{c}
		p.PackageStatus().Dependencies = append(p.PackageStatus().Dependencies, d)
	}
}

// rolling is a rollout in progress, and broken is an upgrade that is stuck.
func rolling(p corev1alpha1.GenericPackage) {
	phases("Ready", "Ready", corev1alpha1.PhaseStateProbing, corev1alpha1.PhaseStateWaiting)(p)
	blocking("deploy", "apps", "Deployment", "shop-web", "1 of 3 replicas are available")(p)
	condition("Progressing", "True", "RollingOut", "Phase deploy waits for 1 object.")(p)
	condition("Ready", "False", "Progressing", "Phase deploy waits for 1 object.")(p)
	p.PackageStatus().Revision = 4
	p.SetCreationTimestamp(metav1.NewTime(now.Add(-4 * time.Minute)))
}

func broken(p corev1alpha1.GenericPackage) {
	phases("Ready", "Ready", corev1alpha1.PhaseStateProbing, corev1alpha1.PhaseStateWaiting)(p)
	blocking("deploy", "apps", "Deployment", "payments-api", `condition "Available" == "True": the condition is False; 0 of 3 replicas are updated and available`)(p)
	blocking("deploy", "", "Service", "payments-api", `admission webhook "policy.example.com" denied the request: label team is missing`)(p)
	condition("Progressing", "True", "RollingOut", "Phase deploy waits for 2 objects.")(p)
	condition("Stalled", "True", "ProgressDeadlineExceeded", "Revision 8 has made no progress for 10 minutes: phase deploy waits for Deployment payments-api.")(p)
	condition("Ready", "False", "Stalled", "Phase deploy waits for 2 objects.")(p)
	p.PackageStatus().Revision = 8
}

// shop is a cluster with a little of everything.
func shop() []corev1alpha1.GenericPackage {
	return []corev1alpha1.GenericPackage{
		pkg("", "cert-operator", "1.15.2"),
		pkg("", "postgres-operator", "1.4.0"),
		pkg("", "observability", "3.2.1", dependsOn("certificates", "", "cert-operator", ">=1.14", true)),
		pkg("", "ingress", "2.0.0", dependsOn("certificates", "", "cert-operator", ">=1.10, <2", true)),
		pkg("shop", "web", "4.0.0", rolling, dependsOn("database", "shop", "orders-db", ">=5", true), dependsOn("ingress", "", "ingress", "^2", true)),
		pkg("shop", "orders-db", "5.1.0", dependsOn("operator", "", "postgres-operator", ">=1.3", true)),
		pkg("shop", "search", "0.9.4", condition("Paused", "True", "Paused", "Paused by its spec."), func(p corev1alpha1.GenericPackage) {
			p.SetAnnotations(map[string]string{corev1alpha1.PauseMessageAnnotation: "index is rebuilt until Friday"})
			p.PackageSpec().Paused = true
		}),
		pkg("payments", "api", "8.0.0", broken, dependsOn("database", "payments", "ledger-db", ">=5", true), dependsOn("ingress", "", "ingress", "^2", true)),
		pkg("payments", "ledger-db", "5.1.0", dependsOn("operator", "", "postgres-operator", ">=1.3", true)),
		pkg("payments", "fraud", "1.0.3", condition("Unpacked", "False", "ImagePullBackOff", "registry.example.com/fraud:v1.0.3: MANIFEST_UNKNOWN: manifest unknown. Push the image, or correct spec.image."),
			condition("Ready", "False", "ImagePullBackOff", ""), func(p corev1alpha1.GenericPackage) { p.PackageStatus().Phases = nil }),
		pkg("reports", "nightly", "1.1.0", condition("DependenciesReady", "False", corev1alpha1.ReasonWaitingForDependencies, "database: package reports/warehouse is not available yet."),
			condition("Ready", "False", "DependenciesNotReady", ""), dependsOn("database", "reports", "warehouse", ">=5", false), func(p corev1alpha1.GenericPackage) { p.PackageStatus().Phases = nil }),
		pkg("reports", "warehouse", "5.2.0", rolling, dependsOn("operator", "", "postgres-operator", ">=1.3", true)),
	}
}

func rows(packages []corev1alpha1.GenericPackage) []page.Row {
	var all []page.Row
	for _, p := range packages {
		all = append(all, page.RowOf(p))
	}
	page.Sort(all)
	return all
}

// many returns packages. Every tenth is not available.
func many(n int) []corev1alpha1.GenericPackage {
	var all []corev1alpha1.GenericPackage
	for i := range n {
		var options []option
		if i%10 == 0 {
			options = append(options, broken)
		}
		all = append(all, pkg(fmt.Sprintf("team-%03d", i%200), fmt.Sprintf("service-%05d", i), "1.2.3", options...))
	}
	return all
}

func text(t *testing.T, p *page.Page) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, p.Write(&b))
	return b.String()
}

// compare compares a page with its file.
func compare(t *testing.T, name string, p *page.Page) {
	t.Helper()
	golden.Text(t, filepath.Join("testdata", name+".html"), text(t, p))
}
