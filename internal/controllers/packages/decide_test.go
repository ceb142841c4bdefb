package packages

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/load"
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
	attempted := func(change func(*load.Attempt)) *load.Attempt {
		a := &load.Attempt{In: load.Input{Fingerprint: printOf(newPackage())}, Started: start, Done: true}
		change(a)
		return a
	}
	refused := func(change ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
		pkg := unpackedPackage(change...)
		refuseImage(pkg)
		return pkg
	}
	elsewhere := unpackedPackage()
	elsewhere.Status.UnpackedHash = load.Fingerprint{Spec: printOf(elsewhere).Spec, Environment: "other"}.String()
	for name, tc := range map[string]struct {
		reason  string
		pkg     *corev1alpha1.Package
		dep     *corev1alpha1.ObjectDeployment
		attempt *load.Attempt
		want    step
		why     string
	}{
		"new":                    {reason: "no package is loaded yet", pkg: newPackage(), want: stepLoad},
		"unpacked":               {reason: "a restart does not pull", pkg: unpackedPackage(), dep: newOwned(), want: stepSync},
		"deployment deleted":     {reason: "its content is known to the image only", pkg: unpackedPackage(), want: stepLoad},
		"slices missing":         {reason: "their content is known to the image only", pkg: unpackedPackage(), dep: newOwned(lacking), want: stepLoad},
		"slices missing, paused": {reason: "no load starts while paused", pkg: unpackedPackage(paused), dep: newOwned(lacking), want: stepSync},
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
			reason: "the image is verified again by the former policy, because the status has the refusal",
			pkg:    refused(), dep: newOwned(), want: stepLoad,
		},
		"refused, and paused": {reason: "no load while paused", pkg: refused(paused), dep: newOwned(), want: stepPaused},
		"another digest": {
			reason: "the tag pointed to another digest in between",
			pkg:    unpackedPackage(), dep: newOwned(annotated(corev1alpha1.PackageDigestAnnotation, "sha256:b")), want: stepLoad,
		},
		"written by the attempt": {
			reason: "back to the former spec, ahead of the status",
			pkg:    unpackedPackage(), dep: newOwned(annotated(corev1alpha1.UnpackedHashAnnotation, "v1-other-other")),
			attempt: attempted(func(a *load.Attempt) { a.In.Fingerprint.Environment, a.Out.Deployed = "other", start }), want: stepLoad,
		},
		"new and paused":          {reason: "defect 4: a missing deployment is fine", pkg: newPackage(paused), want: stepPaused},
		"changed and paused":      {reason: "no unpacking while paused", pkg: newPackage(paused), dep: newOwned(), want: stepPaused},
		"unpacked, then paused":   {reason: "the pause itself is not new content", pkg: unpackedPackage(paused), dep: newOwned(), want: stepSync},
		"deleted while paused":    {reason: "a paused package starts no load", pkg: unpackedPackage(paused), want: stepPaused},
		"loading":                 {reason: "one load at a time", pkg: newPackage(), attempt: attempted(func(a *load.Attempt) { a.Done = false }), want: stepWait},
		"loading something older": {reason: "the spec has changed since", pkg: newPackage(), attempt: attempted(func(a *load.Attempt) { a.In.Fingerprint.Spec = "x" }), want: stepLoad},
		"loaded":                  {reason: "write it", pkg: newPackage(), attempt: attempted(func(a *load.Attempt) { a.Out.Content = newContent() }), want: stepDeploy},
		"wrong":                   {reason: "a wrong package stays wrong", pkg: newPackage(), attempt: attempted(func(a *load.Attempt) { a.Err = errors.New("x") }), want: stepRefuse},
		"failed": {
			reason: "the registry gets time", pkg: newPackage(),
			attempt: attempted(func(a *load.Attempt) { a.Err, a.Retry = errors.New("x"), start.Add(time.Second) }), want: stepWait,
		},
		"failed, requested again": {
			reason: "the user resets the backoff", pkg: newPackage(retried("1")),
			attempt: attempted(func(a *load.Attempt) { a.Err, a.Retry = errors.New("x"), start.Add(time.Second) }), want: stepLoad,
		},
		"failed again": {
			reason: "it was tried as asked", pkg: newPackage(retried("1")),
			attempt: attempted(func(a *load.Attempt) { a.Err, a.Retry, a.RetryValue = errors.New("x"), start.Add(time.Second), "1" }), want: stepWait,
		},
		"wrong, requested again": {
			reason: "the name can refer to another image by now", pkg: newPackage(retried("1")),
			attempt: attempted(func(a *load.Attempt) { a.Err = errors.New("x") }), want: stepLoad,
		},
		"requested while it is loaded": {
			reason: "it can succeed unchanged", pkg: newPackage(retried("1")),
			attempt: attempted(func(a *load.Attempt) { a.Done = false }), want: stepWait,
		},
		"requested without need": {
			reason: "no load has failed", pkg: unpackedPackage(retried("1")), dep: newOwned(), want: stepSync,
		},
		"values can have changed before a retry": {
			reason: "their watch can be behind", pkg: unpackedPackage(fromConfigMap, retried("1")), dep: newOwned(),
			attempt: attempted(func(a *load.Attempt) { a.In.Fingerprint = printOf(newPackage(fromConfigMap)) }), want: stepLoad,
		},
		"values were read again": {
			reason: "the loaded content is deployed, changed or not", pkg: unpackedPackage(fromConfigMap, retried("1")), dep: newOwned(),
			attempt: attempted(func(a *load.Attempt) { a.In.Fingerprint, a.RetryValue = printOf(newPackage(fromConfigMap)), "1" }), want: stepDeploy,
		},
		"values, and the retry is handled": {
			reason: "it was one retry", dep: newOwned(),
			pkg: unpackedPackage(fromConfigMap, retried("1"), func(p *corev1alpha1.Package) { p.Status.LastHandledRetry = "1" }), want: stepSync,
		},
		"values, and the load of the retry failed": {
			reason: "a failed load is tried again, even if the status records the retry", dep: newOwned(),
			pkg: unpackedPackage(fromConfigMap, retried("1"), func(p *corev1alpha1.Package) { p.Status.LastHandledRetry = "1" }),
			attempt: attempted(func(a *load.Attempt) {
				a.In.Fingerprint, a.RetryValue = printOf(newPackage(fromConfigMap)), "1"
				a.Err, a.Retry = errors.New("x"), start.Add(time.Second)
			}), want: stepWait,
		},
		"values, and the result of the retry was not written": {
			reason: "it is written at the next try", dep: newOwned(),
			pkg:     unpackedPackage(fromConfigMap, retried("1"), func(p *corev1alpha1.Package) { p.Status.LastHandledRetry = "1" }),
			attempt: attempted(func(a *load.Attempt) { a.In.Fingerprint, a.RetryValue = printOf(newPackage(fromConfigMap)), "1" }), want: stepDeploy,
		},
		"values, a retry while paused": {
			reason: "no load while paused", pkg: unpackedPackage(fromConfigMap, retried("1"), paused), dep: newOwned(), want: stepSync,
		},
		"requested with a value that is too long": {
			reason: "no status could record it", pkg: newPackage(retried(strings.Repeat("x", 254))),
			attempt: attempted(func(a *load.Attempt) { a.Err = errors.New("x") }), want: stepRefuse,
		},
		"failed, due again": {
			reason: "the time is over", pkg: newPackage(),
			attempt: attempted(func(a *load.Attempt) { a.Err, a.Retry = errors.New("x"), start }), want: stepLoad,
		},
		"failed, paused since": {
			reason: "no pull while paused", pkg: newPackage(paused),
			attempt: attempted(func(a *load.Attempt) { a.Err = errors.New("x") }), want: stepPaused,
		},
		"back to the unpacked spec": {
			reason: "the failure was another spec's", pkg: unpackedPackage(), dep: newOwned(),
			attempt: attempted(func(a *load.Attempt) { a.In.Fingerprint.Spec, a.Err = "x", errors.New("x") }), want: stepSync,
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
		"deployed and deleted": {
			reason: "the loaded content is dropped when it is deployed",
			pkg:    newPackage(), attempt: attempted(func(a *load.Attempt) { a.Out.Content, a.Out.Deployed = newContent(), start }), want: stepLoad,
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

func ptrTo[T any](v T) *T { return &v }
