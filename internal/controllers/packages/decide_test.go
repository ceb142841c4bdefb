package packages

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
)

func paused(pkg *corev1alpha1.Package) { pkg.Spec.Paused = true }

func fromConfigMap(pkg *corev1alpha1.Package) {
	pkg.Spec.ConfigFrom = []corev1alpha1.ValueSource{{ConfigMapKeyRef: &corev1alpha1.ConfigMapKeyReference{Name: "values"}}}
}

// lacking is a deployment that misses slices of its present template.
func lacking(dep *corev1alpha1.ObjectDeployment) {
	dep.Status.ObservedGeneration = dep.Generation
	conditions.Set(&dep.Status.Conditions, dep.Generation, corev1alpha1.ConditionProgressing, false, corev1alpha1.ReasonSlicesMissing, "missing")
}

func annotated(key, value string) func(*corev1alpha1.ObjectDeployment) {
	return func(dep *corev1alpha1.ObjectDeployment) { dep.Annotations = map[string]string{key: value} }
}

func TestDecide(t *testing.T) {
	t.Parallel()
	attempted := func(change func(*attempt)) *attempt {
		a := &attempt{In: loadInput{fingerprint: printOf(newPackage())}, Started: start, Done: true}
		change(a)
		return a
	}
	refused := func(change ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
		pkg := unpackedPackage(change...)
		refuseImage(pkg)
		return pkg
	}
	elsewhere := unpackedPackage()
	elsewhere.Status.UnpackedHash = fingerprint{spec: printOf(elsewhere).spec, environment: "other"}.String()
	for name, tc := range map[string]struct {
		reason  string
		pkg     *corev1alpha1.Package
		dep     *corev1alpha1.ObjectDeployment
		attempt *attempt
		want    step
		why     string
	}{
		"new":                    {reason: "nothing is loaded yet", pkg: newPackage(), want: stepLoad},
		"unpacked":               {reason: "a restart pulls nothing", pkg: unpackedPackage(), dep: newOwned(), want: stepSync},
		"deployment deleted":     {reason: "its content is known to the image only", pkg: unpackedPackage(), want: stepLoad},
		"slices missing":         {reason: "their content is known to the image only", pkg: unpackedPackage(), dep: newOwned(lacking), want: stepLoad},
		"slices missing, paused": {reason: "nothing is made while paused", pkg: unpackedPackage(paused), dep: newOwned(lacking), want: stepSync},
		"cluster upgraded":       {reason: "templates read the environment", pkg: elsewhere, dep: newOwned(), want: stepLoad},
		"written, not recorded": {
			reason: "the status describes an earlier state: it does not prove the present one",
			pkg:    unpackedPackage(), dep: newOwned(annotated(corev1alpha1.UnpackedHashAnnotation, "v1-other-other")), want: stepLoad,
		},
		"recorded": {
			reason: "the deployment agrees",
			pkg:    unpackedPackage(), dep: newOwned(annotated(corev1alpha1.UnpackedHashAnnotation, printOf(newPackage()).String())), want: stepSync,
		},
		"refused, and unpacked before": {
			reason: "the image is verified again by what counted before, as the status has the refusal",
			pkg:    refused(), dep: newOwned(), want: stepLoad,
		},
		"refused, and paused": {reason: "nothing is loaded while paused", pkg: refused(paused), dep: newOwned(), want: stepPaused},
		"another digest": {
			reason: "the tag stood for something else in between",
			pkg:    unpackedPackage(), dep: newOwned(annotated(corev1alpha1.PackageDigestAnnotation, "sha256:b")), want: stepLoad,
		},
		"written by the attempt": {
			reason: "back to the former spec, ahead of the status",
			pkg:    unpackedPackage(), dep: newOwned(annotated(corev1alpha1.UnpackedHashAnnotation, "v1-other-other")),
			attempt: attempted(func(a *attempt) { a.In.fingerprint.environment, a.Out.deployed = "other", start }), want: stepLoad,
		},
		"new and paused":          {reason: "defect 4: a missing deployment is fine", pkg: newPackage(paused), want: stepPaused},
		"changed and paused":      {reason: "nothing is unpacked while paused", pkg: newPackage(paused), dep: newOwned(), want: stepPaused},
		"unpacked, then paused":   {reason: "the pause itself is no new content", pkg: unpackedPackage(paused), dep: newOwned(), want: stepSync},
		"deleted while paused":    {reason: "paused means that nothing is made", pkg: unpackedPackage(paused), want: stepPaused},
		"loading":                 {reason: "one load at a time", pkg: newPackage(), attempt: attempted(func(a *attempt) { a.Done = false }), want: stepWait},
		"loading something older": {reason: "the spec has changed since", pkg: newPackage(), attempt: attempted(func(a *attempt) { a.In.fingerprint.spec = "x" }), want: stepLoad},
		"loaded":                  {reason: "write it", pkg: newPackage(), attempt: attempted(func(a *attempt) { a.Out.content = newContent() }), want: stepDeploy},
		"wrong":                   {reason: "a wrong package stays wrong", pkg: newPackage(), attempt: attempted(func(a *attempt) { a.Err = errors.New("x") }), want: stepRefuse},
		"failed": {
			reason: "the registry gets time", pkg: newPackage(),
			attempt: attempted(func(a *attempt) { a.Err, a.Retry = errors.New("x"), start.Add(time.Second) }), want: stepWait,
		},
		"failed, asked for again": {
			reason: "the user resets the backoff", pkg: newPackage(retried("1")),
			attempt: attempted(func(a *attempt) { a.Err, a.Retry = errors.New("x"), start.Add(time.Second) }), want: stepLoad,
		},
		"failed again": {
			reason: "it was tried as asked", pkg: newPackage(retried("1")),
			attempt: attempted(func(a *attempt) { a.Err, a.Retry, a.RetryValue = errors.New("x"), start.Add(time.Second), "1" }), want: stepWait,
		},
		"wrong, asked for again": {
			reason: "another image may have its name by now", pkg: newPackage(retried("1")),
			attempt: attempted(func(a *attempt) { a.Err = errors.New("x") }), want: stepLoad,
		},
		"asked for while it is loaded": {
			reason: "it may succeed as it is", pkg: newPackage(retried("1")),
			attempt: attempted(func(a *attempt) { a.Done = false }), want: stepWait,
		},
		"asked for without need": {
			reason: "nothing has failed", pkg: unpackedPackage(retried("1")), dep: newOwned(), want: stepSync,
		},
		"values may have changed before a retry": {
			reason: "their watch may be behind", pkg: unpackedPackage(fromConfigMap, retried("1")), dep: newOwned(),
			attempt: attempted(func(a *attempt) { a.In.fingerprint = printOf(newPackage(fromConfigMap)) }), want: stepLoad,
		},
		"values were read again": {
			reason: "the loaded content is deployed, changed or not", pkg: unpackedPackage(fromConfigMap, retried("1")), dep: newOwned(),
			attempt: attempted(func(a *attempt) { a.In.fingerprint, a.RetryValue = printOf(newPackage(fromConfigMap)), "1" }), want: stepDeploy,
		},
		"values, and the retry is handled": {
			reason: "it was one retry", dep: newOwned(),
			pkg: unpackedPackage(fromConfigMap, retried("1"), func(p *corev1alpha1.Package) { p.Status.LastHandledRetry = "1" }), want: stepSync,
		},
		"values, and the load of the retry failed": {
			reason: "a failed load is tried again, whatever the status says of the retry", dep: newOwned(),
			pkg: unpackedPackage(fromConfigMap, retried("1"), func(p *corev1alpha1.Package) { p.Status.LastHandledRetry = "1" }),
			attempt: attempted(func(a *attempt) {
				a.In.fingerprint, a.RetryValue = printOf(newPackage(fromConfigMap)), "1"
				a.Err, a.Retry = errors.New("x"), start.Add(time.Second)
			}), want: stepWait,
		},
		"values, and what the retry loaded was not written": {
			reason: "it is written at the next try", dep: newOwned(),
			pkg:     unpackedPackage(fromConfigMap, retried("1"), func(p *corev1alpha1.Package) { p.Status.LastHandledRetry = "1" }),
			attempt: attempted(func(a *attempt) { a.In.fingerprint, a.RetryValue = printOf(newPackage(fromConfigMap)), "1" }), want: stepDeploy,
		},
		"values, a retry while paused": {
			reason: "nothing is loaded while paused", pkg: unpackedPackage(fromConfigMap, retried("1"), paused), dep: newOwned(), want: stepSync,
		},
		"asked for at too great length": {
			reason: "no status could record it", pkg: newPackage(retried(strings.Repeat("x", 254))),
			attempt: attempted(func(a *attempt) { a.Err = errors.New("x") }), want: stepRefuse,
		},
		"failed, due again": {
			reason: "the time is over", pkg: newPackage(),
			attempt: attempted(func(a *attempt) { a.Err, a.Retry = errors.New("x"), start }), want: stepLoad,
		},
		"failed, paused since": {
			reason: "nothing is pulled while paused", pkg: newPackage(paused),
			attempt: attempted(func(a *attempt) { a.Err = errors.New("x") }), want: stepPaused,
		},
		"back to the unpacked spec": {
			reason: "the failure was another spec's", pkg: unpackedPackage(), dep: newOwned(),
			attempt: attempted(func(a *attempt) { a.In.fingerprint.spec, a.Err = "x", errors.New("x") }), want: stepSync,
		},
		"orphaned deployment": {
			reason: "an orphaning deletion leaves it to the next package of its name",
			pkg:    newPackage(), dep: newOwned(func(d *corev1alpha1.ObjectDeployment) {
				d.OwnerReferences = nil
				d.Labels = map[string]string{corev1alpha1.PackageInstanceLabel: "shop"}
			}), want: stepLoad,
		},
		"restored from backup": {
			reason: "a reference to an earlier package of this name dangles",
			pkg:    unpackedPackage(), dep: newOwned(controlledBy("Package", "shop", "")), want: stepSync,
		},
		"deployed and gone": {
			reason: "the loaded content is dropped when it is deployed",
			pkg:    newPackage(), attempt: attempted(func(a *attempt) { a.Out.content, a.Out.deployed = newContent().summary(), start }), want: stepLoad,
		},
		"made by hand": {
			reason: "its replacement was not requested",
			pkg:    newPackage(), dep: newOwned(func(d *corev1alpha1.ObjectDeployment) { d.OwnerReferences = nil }),
			want: stepYield, why: "not made for a package",
		},
		"someone else's": {
			reason: "of two owners one wins",
			pkg:    newPackage(), dep: newOwned(controlledBy("HostedClusterPackage", "shop", "")),
			want: stepYield, why: "HostedClusterPackage shop",
		},
		"twin's": {
			reason: "a ClusterPackage of the name is another one",
			pkg:    newPackage(), dep: newOwned(controlledBy("ClusterPackage", "shop", "")), want: stepYield, why: "ClusterPackage shop",
		},
		"on its way out": {
			reason: "a former package's objects have to be removed first",
			pkg:    newPackage(), dep: newOwned(func(d *corev1alpha1.ObjectDeployment) { d.DeletionTimestamp = &metav1.Time{Time: start} }),
			want: stepAwait, why: "torn down",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := view{pkg: tc.pkg, choice: imageChoice, fingerprint: printOf(tc.pkg), attempt: tc.attempt, now: start}
			if tc.dep != nil {
				v.dep = tc.dep
			}
			got, why := decide(v)
			if got != tc.want {
				t.Errorf("%s: got step %d, want %d", tc.reason, got, tc.want)
			}
			if !strings.Contains(why, tc.why) || (tc.why == "") != (why == "") {
				t.Errorf("why: %q, want %q in it", why, tc.why)
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := newPackage(func(p *corev1alpha1.Package) { p.Spec.Config = ptrTo(raw(`{"b":1.0,"a":{"y":2,"x":null}}`)) })
	for name, tc := range map[string]struct {
		reason string
		change func(*corev1alpha1.Package)
		same   bool
	}{
		"order of keys": {"the API server sorts them", func(p *corev1alpha1.Package) { p.Spec.Config = ptrTo(raw(`{"a": {"x":null,"y":2}, "b": 1}`)) }, true},
		"pause":         {"not content", paused, true},
		"labels":        {"not content", func(p *corev1alpha1.Package) { p.Labels = map[string]string{"a": "b"} }, true},
		"limits":        {"followed without a load", func(p *corev1alpha1.Package) { p.Spec.RevisionHistoryLimit = new(int32) }, true},
		"image":         {"content", func(p *corev1alpha1.Package) { p.Spec.Image += "2" }, false},
		"component":     {"content", func(p *corev1alpha1.Package) { p.Spec.Component = "x" }, false},
		"config value":  {"content", func(p *corev1alpha1.Package) { p.Spec.Config = ptrTo(raw(`{"b":1,"a":{"y":3,"x":null}}`)) }, false},
		"no config":     {"content", func(p *corev1alpha1.Package) { p.Spec.Config = nil }, false},
		"slicing": {"the template changes", func(p *corev1alpha1.Package) {
			p.Annotations = map[string]string{corev1alpha1.ChunkingStrategyAnnotation: "NoOp"}
		}, false},
	} {
		changed := base.DeepCopy()
		tc.change(changed)
		if same := printOf(base) == printOf(changed); same != tc.same {
			t.Errorf("%s: same is %t (%s)", name, same, tc.reason)
		}
	}
	// The hash is stored: another one makes every package load again.
	if got, want := printOf(base).String(), "v1-78712872a00cdaaf0ede59cab347690d-89fe91ff0efff26ab39dd193a3fde086"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if back, ok := parseFingerprint(printOf(base).String()); !ok || back != printOf(base) {
		t.Errorf("read back as %v", back)
	}
}

func ptrTo[T any](v T) *T { return &v }

func TestForeignHashes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason     string
		generation int64
		invalid    bool
		want       unpacked
	}{
		"current":          {"moving in from another engine pulls nothing", 2, false, unpackedCurrent},
		"of an older spec": {"it says nothing about this one", 1, false, unpackedNever},
		"invalid":          {"that engine remembered failures as well", 2, true, unpackedNever},
	} {
		pkg := newPackage()
		pkg.Status.UnpackedHash = strings.Repeat("0f", 32)
		conditions.Set(&pkg.Status.Conditions, tc.generation, corev1alpha1.ConditionUnpacked, true, corev1alpha1.ReasonUnpackSuccess, "")
		if tc.invalid {
			conditions.Set(&pkg.Status.Conditions, tc.generation, corev1alpha1.ConditionInvalid, true, corev1alpha1.ReasonLoadError, "")
		}
		if got := compare(pkg, printOf(pkg)); got != tc.want {
			t.Errorf("%s: got %d, want %d (%s)", name, got, tc.want, tc.reason)
		}
	}
}
