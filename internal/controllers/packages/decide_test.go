package packages

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
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
		"new":                    {"no package is loaded yet", newPackage(), nil, nil, stepLoad, ""},
		"unpacked":               {"a restart does not pull", unpackedPackage(), newOwned(), nil, stepSync, ""},
		"deployment deleted":     {"its content is known to the image only", unpackedPackage(), nil, nil, stepLoad, ""},
		"slices missing":         {"their content is known to the image only", unpackedPackage(), newOwned(lacking), nil, stepLoad, ""},
		"slices missing, paused": {"no load starts while paused", unpackedPackage(paused), newOwned(lacking), nil, stepSync, ""},
		"cluster upgraded":       {"templates read the environment", elsewhere, newOwned(), nil, stepLoad, ""},
		"written, not recorded": {"the status describes an earlier state: it does not prove the present one",
			unpackedPackage(), newOwned(annotated(corev1alpha1.UnpackedHashAnnotation, "v1-other-other")), nil, stepLoad, ""},
		"recorded": {"the deployment agrees",
			unpackedPackage(), newOwned(annotated(corev1alpha1.UnpackedHashAnnotation, printOf(newPackage()).String())), nil, stepSync, ""},
		"refused, and unpacked before": {"the image is verified again by the former policy, because the status has the refusal",
			refused(), newOwned(), nil, stepLoad, ""},
		"refused, and paused": {"no load while paused", refused(paused), newOwned(), nil, stepPaused, ""},
		"another digest": {"the tag pointed to another digest in between",
			unpackedPackage(), newOwned(annotated(corev1alpha1.PackageDigestAnnotation, "sha256:b")), nil, stepLoad, ""},
		"written by the attempt": {"back to the former spec, ahead of the status",
			unpackedPackage(), newOwned(annotated(corev1alpha1.UnpackedHashAnnotation, "v1-other-other")),
			attempted(func(a *load.Attempt) { a.In.Fingerprint.Environment, a.Out.Deployed = "other", start }), stepLoad, ""},
		"new and paused":        {"defect 4: a missing deployment is fine", newPackage(paused), nil, nil, stepPaused, ""},
		"changed and paused":    {"no unpacking while paused", newPackage(paused), newOwned(), nil, stepPaused, ""},
		"unpacked, then paused": {"the pause itself is not new content", unpackedPackage(paused), newOwned(), nil, stepSync, ""},
		"deleted while paused":  {"a paused package starts no load", unpackedPackage(paused), nil, nil, stepPaused, ""},
		"loading":               {"one load at a time", newPackage(), nil, attempted(func(a *load.Attempt) { a.Done = false }), stepWait, ""},
		"loading something older": {"the spec has changed since",
			newPackage(), nil, attempted(func(a *load.Attempt) { a.In.Fingerprint.Spec = "x" }), stepLoad, ""},
		"loaded": {"write it", newPackage(), nil, attempted(func(a *load.Attempt) { a.Out.Content = newContent() }), stepDeploy, ""},
		"wrong": {"a wrong package stays wrong",
			newPackage(), nil, attempted(func(a *load.Attempt) { a.Err = errors.New("x") }), stepRefuse, ""},
		"failed": {"the registry gets time",
			newPackage(), nil, attempted(func(a *load.Attempt) { a.Err, a.Retry = errors.New("x"), start.Add(time.Second) }), stepWait, ""},
		"failed, requested again": {"the user resets the backoff",
			newPackage(retried("1")), nil, attempted(func(a *load.Attempt) { a.Err, a.Retry = errors.New("x"), start.Add(time.Second) }), stepLoad, ""},
		"failed again": {"it was tried as asked",
			newPackage(retried("1")), nil,
			attempted(func(a *load.Attempt) { a.Err, a.Retry, a.RetryValue = errors.New("x"), start.Add(time.Second), "1" }), stepWait, ""},
		"wrong, requested again": {"the name can refer to another image by now",
			newPackage(retried("1")), nil, attempted(func(a *load.Attempt) { a.Err = errors.New("x") }), stepLoad, ""},
		"requested while it is loaded": {"it can succeed unchanged",
			newPackage(retried("1")), nil, attempted(func(a *load.Attempt) { a.Done = false }), stepWait, ""},
		"requested without need": {"no load has failed", unpackedPackage(retried("1")), newOwned(), nil, stepSync, ""},
		"values can have changed before a retry": {"their watch can be behind",
			unpackedPackage(fromConfigMap, retried("1")), newOwned(),
			attempted(func(a *load.Attempt) { a.In.Fingerprint = printOf(newPackage(fromConfigMap)) }), stepLoad, ""},
		"values were read again": {"the loaded content is deployed, changed or not",
			unpackedPackage(fromConfigMap, retried("1")), newOwned(),
			attempted(func(a *load.Attempt) { a.In.Fingerprint, a.RetryValue = printOf(newPackage(fromConfigMap)), "1" }), stepDeploy, ""},
		"values, and the retry is handled": {"it was one retry",
			unpackedPackage(fromConfigMap, retried("1"), func(p *corev1alpha1.Package) { p.Status.LastHandledRetry = "1" }), newOwned(),
			nil, stepSync, ""},
		"values, and the load of the retry failed": {"a failed load is tried again, even if the status records the retry",
			unpackedPackage(fromConfigMap, retried("1"), func(p *corev1alpha1.Package) { p.Status.LastHandledRetry = "1" }), newOwned(),
			attempted(func(a *load.Attempt) {
				a.In.Fingerprint, a.RetryValue = printOf(newPackage(fromConfigMap)), "1"
				a.Err, a.Retry = errors.New("x"), start.Add(time.Second)
			}), stepWait, ""},
		"values, and the result of the retry was not written": {"it is written at the next try",
			unpackedPackage(fromConfigMap, retried("1"), func(p *corev1alpha1.Package) { p.Status.LastHandledRetry = "1" }), newOwned(),
			attempted(func(a *load.Attempt) { a.In.Fingerprint, a.RetryValue = printOf(newPackage(fromConfigMap)), "1" }), stepDeploy, ""},
		"values, a retry while paused": {"no load while paused",
			unpackedPackage(fromConfigMap, retried("1"), paused), newOwned(), nil, stepSync, ""},
		"requested with a value that is too long": {"no status could record it",
			newPackage(retried(strings.Repeat("x", 254))), nil, attempted(func(a *load.Attempt) { a.Err = errors.New("x") }), stepRefuse, ""},
		"failed, due again": {"the time is over",
			newPackage(), nil, attempted(func(a *load.Attempt) { a.Err, a.Retry = errors.New("x"), start }), stepLoad, ""},
		"failed, paused since": {"no pull while paused",
			newPackage(paused), nil, attempted(func(a *load.Attempt) { a.Err = errors.New("x") }), stepPaused, ""},
		"back to the unpacked spec": {"the failure was another spec's",
			unpackedPackage(), newOwned(), attempted(func(a *load.Attempt) { a.In.Fingerprint.Spec, a.Err = "x", errors.New("x") }), stepSync, ""},
		"orphaned deployment": {"an orphaning deletion leaves it to the next package of its name",
			newPackage(), newOwned(func(d *corev1alpha1.ObjectDeployment) {
				d.OwnerReferences = nil
				d.Labels = map[string]string{corev1alpha1.PackageInstanceLabel: "shop"}
			}), nil, stepLoad, ""},
		"restored from backup": {"a reference to an earlier package of this name dangles",
			unpackedPackage(), newOwned(controlledBy("Package", "shop", "")), nil, stepSync, ""},
		"deployed and deleted": {"the loaded content is dropped when it is deployed",
			newPackage(), nil, attempted(func(a *load.Attempt) { a.Out.Content, a.Out.Deployed = newContent(), start }), stepLoad, ""},
		"made by hand": {"its replacement was not requested",
			newPackage(), newOwned(func(d *corev1alpha1.ObjectDeployment) { d.OwnerReferences = nil }), nil, stepYield, "not made for a package"},
		"someone else's": {"of two owners one wins",
			newPackage(), newOwned(controlledBy("HostedClusterPackage", "shop", "")), nil, stepYield, "HostedClusterPackage shop"},
		"twin's": {"a ClusterPackage of the name is another one",
			newPackage(), newOwned(controlledBy("ClusterPackage", "shop", "")), nil, stepYield, "ClusterPackage shop"},
		"on its way out": {"a former package's objects have to be removed first",
			newPackage(), newOwned(func(d *corev1alpha1.ObjectDeployment) { d.DeletionTimestamp = &metav1.Time{Time: start} }),
			nil, stepAwait, "torn down"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := view{pkg: tc.pkg, choice: imageChoice, fingerprint: printOf(tc.pkg), attempt: tc.attempt, now: start}
			if tc.dep != nil {
				v.dep = tc.dep
			}
			got, why := decide(v)
			require.Equal(t, tc.want, got, tc.reason)
			if !strings.Contains(why, tc.why) || (tc.why == "") != (why == "") {
				t.Errorf("why: %q, want %q in it", why, tc.why)
			}
		})
	}
}

// Inputs other than the spec decide, too.
func TestDecideByInputs(t *testing.T) {
	t.Parallel()
	failed := func(change func(*load.Attempt)) *load.Attempt {
		a := &load.Attempt{In: load.Input{Fingerprint: printOf(newPackage())}, Done: true, Err: errors.New("x"), Retry: start.Add(time.Hour), Out: load.Out{Dependencies: "before"}}
		change(a)
		return a
	}
	for name, tc := range map[string]struct {
		reason  string
		pkg     *corev1alpha1.Package
		dep     *corev1alpha1.ObjectDeployment
		attempt *load.Attempt
		inputs  inputs
		want    step
	}{
		"a foreign deployment": {
			reason: "it is not ours in any case", pkg: newPackage(), dep: newOwned(controlledBy("Other", "other", "")),
			inputs: inputs{waiting: true}, want: stepYield,
		},
		"sources not known yet":       {reason: "a restart must not take them for absent", pkg: unpackedPackage(), inputs: inputs{waiting: true}, want: stepGather},
		"sources cannot be watched":   {reason: "what would be rendered is not known", pkg: unpackedPackage(), inputs: inputs{inputError: "x"}, want: stepGather},
		"tag has moved":               {reason: "the Package looks after it", pkg: unpackedPackage(), inputs: inputs{newDigest: "sha256:b"}, want: stepLoad},
		"tag has moved, paused":       {reason: "no rollout while paused", pkg: unpackedPackage(paused), inputs: inputs{newDigest: "sha256:b"}, want: stepPaused},
		"failed":                      {reason: "it is tried again later", pkg: newPackage(), attempt: failed(func(*load.Attempt) {}), inputs: inputs{dependencies: "before"}, want: stepWait},
		"failed, pull secret changed": {reason: "it can work now", pkg: newPackage(), attempt: failed(func(*load.Attempt) {}), inputs: inputs{dependencies: "after"}, want: stepLoad},
		"failed, not known by what":   {reason: "pull secrets are being looked at", pkg: newPackage(), attempt: failed(func(*load.Attempt) {}), want: stepWait},
		"refused, its turn":           {reason: "the obstacle was removed", pkg: newPackage(), attempt: failed(func(a *load.Attempt) { a.Retry = time.Time{} }), inputs: inputs{retryNumber: 1}, want: stepLoad},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.dep == nil {
				tc.dep = newOwned()
			}
			v := view{pkg: tc.pkg, choice: imageChoice, dep: tc.dep, fingerprint: printOf(tc.pkg), attempt: tc.attempt, inputs: tc.inputs, now: start}
			if got, _ := decide(v); got != tc.want {
				t.Errorf("%s: %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestPropagation(t *testing.T) {
	t.Parallel()
	for policy, want := range map[corev1alpha1.DeletionPolicy]string{
		"": "Background", corev1alpha1.DeletionPolicyDelete: "Background", corev1alpha1.DeletionPolicyOrphan: "Orphan",
	} {
		require.Equal(t, want, string(propagation(&corev1alpha1.PackageSpec{DeletionPolicy: policy})), policy)
	}
}

func TestWithLookupError(t *testing.T) {
	t.Parallel()
	told := withLookupError("Loaded.", "no route")
	if told == "Loaded." || withLookupError(told, "no route") != told || withLookupError(told, "") != "Loaded." {
		t.Errorf("%q", told)
	}
}

func TestOutdated(t *testing.T) {
	t.Parallel()
	written := func(generation string) func(*corev1alpha1.ObjectDeployment) {
		return annotated(corev1alpha1.PackageGenerationAnnotation, generation)
	}
	for name, tc := range map[string]struct {
		reason string
		dep    *corev1alpha1.ObjectDeployment
		want   bool
	}{
		"no deployment":    {reason: "no status was written for any generation"},
		"earlier engine":   {reason: "it was not recorded", dep: newOwned()},
		"changed since":    {reason: "the usual case after a change of the spec", dep: newOwned(written("1"))},
		"same":             {reason: "the usual case at rest", dep: newOwned(written("2"))},
		"known as it was":  {reason: "a process saw the spec as it is by now", dep: newOwned(written("3")), want: true},
		"not a number":     {reason: "a user wrote it by hand", dep: newOwned(written("three"))},
		"of a former one":  {reason: "the generations of a new Package start again", dep: newOwned(written("9"), controlledBy("Package", "shop", ""))},
		"without an owner": {reason: "left behind by a former Package", dep: newOwned(written("9"), func(d *corev1alpha1.ObjectDeployment) { d.OwnerReferences = nil })},
		"of another owner": {reason: "not ours to write at all", dep: newOwned(written("9"), controlledBy("ConfigMap", "someone", ""))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var dep corev1alpha1.GenericObjectDeployment
			if tc.dep != nil {
				dep = tc.dep
			}
			require.Equal(t, tc.want, deployment.Outdated(newPackage(), dep), "outdated")
		})
	}
}

// A Package that a list shows as it was is read again before anything is made of
// it; a record that is wrong is corrected by the next read.
func TestPackageIsReadAgainWhereItIsOutdated(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1alpha1.AddToScheme(scheme))
	is := newPackage(func(p *corev1alpha1.Package) { p.Generation, p.ResourceVersion = 3, "8" })
	is.Spec.Image = "registry.test/shop:v2"
	dep := newOwned(annotated(corev1alpha1.PackageGenerationAnnotation, "3"))
	r, _ := newReconciler(t)
	r.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(newPackage(), dep).Build()
	r.Reader = fake.NewClientBuilder().WithScheme(scheme).WithObjects(is).Build()
	key := types.NamespacedName{Namespace: "team", Name: "shop"}
	s, err := r.gather(t.Context(), key)
	require.NoError(t, err)
	if in := s.newInput(""); s.pkg.PackageSpec().Image != is.Spec.Image || in.Pkg.PackageSpec().Image != is.Spec.Image {
		t.Errorf("it continues with %s, for %s", s.pkg.PackageSpec().Image, in.Pkg.PackageSpec().Image)
	}
	require.NoError(t, r.Reader.(client.Client).Delete(t.Context(), is))
	r.Fresh = mutationcache.NewStore()
	if s, err = r.gather(t.Context(), key); err == nil && s != nil && s.pkg.GetDeletionTimestamp() == nil {
		t.Errorf("a deleted Package is reconciled: %+v", s.pkg)
	}

	wrong := newOwned(annotated(corev1alpha1.PackageGenerationAnnotation, "9"))
	Accounts{}.copySettings(wrong, newPackage())
	if deployment.Outdated(newPackage(), wrong) {
		t.Errorf("the record stays wrong: %v", wrong.Annotations)
	}
}

// A Package that is cached only in part is read on each reconcile, and its texts are not kept.
func TestReducedPackageIsRead(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1alpha1.AddToScheme(scheme))
	whole := newPackage(func(p *corev1alpha1.Package) { p.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"a":"b"}`)} })
	reduced := whole.DeepCopy()
	mutationcache.Reduce(reduced)
	r, _ := newReconciler(t)
	r.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(reduced).Build()
	r.Reader = fake.NewClientBuilder().WithScheme(scheme).WithObjects(whole).Build()
	for range 2 {
		s, err := r.gather(t.Context(), types.NamespacedName{Namespace: "team", Name: "shop"})
		require.NoError(t, err)
		if config := s.pkg.PackageSpec().Config; config == nil || string(config.Raw) != `{"a":"b"}` {
			t.Errorf("it continues with the config %v", config)
		}
		older := reduced.DeepCopy()
		older.ResourceVersion = "1"
		if !mutationcache.Reduced(r.Fresh.Latest(older)) {
			t.Error("it is kept")
		}
	}
}

// While a repository was never fetched, a refusal is not final.
func TestPendingRefusalDoesNotStall(t *testing.T) {
	t.Parallel()
	for _, pending := range []bool{true, false} {
		c := choice.Choice{Reason: corev1alpha1.ReasonUnknownPackage, Pending: pending}
		if state := kstatusOf(view{pkg: newPackage(follows("^1")), choice: c, outcome: outcome{step: stepHold}}, false); state.Ready || state.Stalled == pending {
			t.Errorf("pending %t: %+v", pending, state)
		}
	}
}

// A refusal never changes the installed version; the rest of the spec is followed if that version
// still fits.
func TestRefusalsHoldWhatIsInstalled(t *testing.T) {
	t.Parallel()
	pkg := newPackage(follows("^1"), hasVersion("1.0.0"))
	for name, tc := range map[string]struct {
		choice choice.Choice
		change bool
		want   step
	}{
		"no other change":            {choice.Choice{Origin: choice.Installed(pkg), Reason: corev1alpha1.ReasonNoMatchingVersion}, false, stepSync},
		"the version still fits":     {choice.Choice{Origin: choice.Installed(pkg), Reason: corev1alpha1.ReasonDowngradeRefused, Fits: true}, true, stepLoad},
		"the version does not fit":   {choice.Choice{Origin: choice.Installed(pkg), Reason: corev1alpha1.ReasonNoMatchingVersion}, true, stepHold},
		"nothing is installed":       {choice.Choice{Reason: corev1alpha1.ReasonUnknownPackage}, true, stepHold},
		"manifests were withdrawn":   {choice.Choice{Origin: choice.Origin{Digest: digest, Version: "1.0.0"}, Reason: corev1alpha1.ReasonUnknownPackage, Fits: true}, true, stepHold},
		"a version that was chosen":  {choice.Choice{Origin: choice.Origin{Image: "new", Version: "1.1.0"}, Reason: corev1alpha1.ReasonResolved}, true, stepLoad},
		"the version that it is now": {choice.Choice{Origin: choice.Installed(pkg), Reason: corev1alpha1.ReasonResolved}, false, stepSync},
	} {
		v := view{pkg: pkg.DeepCopy(), dep: newOwned(), choice: tc.choice, now: start}
		unpacked, err := load.FingerprintOf(pkg, choice.Installed(pkg), env, nil, "")
		require.NoError(t, err)
		v.pkg.PackageStatus().UnpackedHash = unpacked.String()
		if tc.change {
			v.pkg.PackageSpec().Component = "changed"
		}
		if v.fingerprint, err = load.FingerprintOf(v.pkg, tc.choice.Origin, env, nil, ""); err != nil {
			t.Fatal(err)
		}
		if got, _ := decide(v); got != tc.want {
			t.Errorf("%s: step %d, want %d", name, got, tc.want)
		}
		v.step, _ = decide(v)
		state := kstatusOf(v, observed(v))
		if strings.Contains(state.Message, "other changes of the spec wait") != (tc.choice.Refused() && tc.want == stepHold) {
			t.Errorf("%s: %s", name, state.Message)
		}
		if state.Stalled != tc.choice.Refused() || tc.choice.Refused() && state.Reason != tc.choice.Reason {
			t.Errorf("%s: %+v", name, state)
		}
	}
}

// follows makes a Package follow a constraint.
func follows(constraint string) func(*corev1alpha1.Package) {
	return func(pkg *corev1alpha1.Package) {
		pkg.Spec.Image = ""
		pkg.Spec.PackageRef = &corev1alpha1.PackageReference{Name: "shop", VersionSelection: corev1alpha1.VersionSelection{Version: constraint}}
	}
}

// hasVersion makes a Package have installed a version that was chosen.
func hasVersion(version string) func(*corev1alpha1.Package) {
	return func(pkg *corev1alpha1.Package) {
		pkg.Status.LastAttempted = &corev1alpha1.AttemptedVersion{PackageName: "shop", Version: version}
		pkg.Status.Resolved = &corev1alpha1.ResolvedPackage{
			PackageName: "shop", Version: version, Image: image + "-" + version, Digest: digest, Repository: "PackageRepository/stable",
		}
		conditions.Set(&pkg.Status.Conditions, pkg.Generation, corev1alpha1.ConditionResolved, true, corev1alpha1.ReasonResolved, "")
	}
}

// A package whose sources change all the time, for example because it writes them, is loaded at a
// limited rate; another spec is loaded at once.
func TestLoadsArePaced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	pkg := named("a", image)
	loads := 0
	change := func() (started bool) {
		s := b.of(pkg)
		loads++
		s.step, s.fingerprint, s.now = stepLoad, load.Fingerprint{Spec: fmt.Sprint(loads)}, start
		require.NoError(t, s.next(s.startLoad)(t.Context()))
		return s.step == stepLoad
	}
	for n := range limits.PackageLoadBurst {
		if !change() {
			t.Fatalf("load %d waits", n)
		}
	}
	if change() {
		t.Error("the sources can change endlessly")
	}
	pkg.Generation++
	if !change() {
		t.Error("another spec waits")
	}
}
