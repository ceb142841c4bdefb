package packages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects/objectslices"
	"lockstep.run/lockstep/test/require"
)

// sensitiveContent returns a package with two ConfigMaps and a Secret with a value.
func sensitiveContent(value string) *load.Content {
	content := newContent()
	objects := &content.Template.Phases[0].Objects
	*objects = append(*objects, corev1alpha1.ObjectSetObject{
		Object: raw(fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"credentials"},"stringData":{"password":%q}}`, value)),
	})
	*objects = append(*objects, corev1alpha1.ObjectSetObject{
		Object: raw(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":{"text":%q}}`, value[:1])),
	})
	content.Sealing = &objectslices.Sealing{Key: []byte("key of the package")}
	return content
}

// passOver returns a reconciliation of the Package by a process with an empty memory.
func passOver(t *testing.T, c client.Client, reader client.Reader, pkg corev1alpha1.GenericPackage) *reconciliation {
	t.Helper()
	r, _ := newReconciler(t)
	r.Client, r.Reader = c, reader
	s := r.of(copyOf(pkg))
	s.attempt = &load.Attempt{}
	dep := corev1alpha1.ScopeOf(pkg.GetNamespace()).NewObjectDeployment()
	switch err := reader.Get(t.Context(), client.ObjectKeyFromObject(pkg), dep); {
	case err == nil:
		s.dep = dep
	case !apierrors.IsNotFound(err):
		t.Fatal(err)
	}
	return s
}

// stateOfAll returns the stored objects, by kind and name.
func stateOfAll(t *testing.T, server client.Client) map[string]string {
	t.Helper()
	state := map[string]string{}
	text := func(values ...any) string {
		encoded, err := json.Marshal(values)
		require.NoError(t, err)
		return string(encoded)
	}
	deployments, slices, secrets := &corev1alpha1.ObjectDeploymentList{}, &corev1alpha1.ObjectSliceList{}, &corev1.SecretList{}
	for _, list := range []client.ObjectList{deployments, slices, secrets} {
		require.NoError(t, server.List(t.Context(), list))
	}
	for _, d := range deployments.Items {
		state["deployment "+d.Name] = text(d.Spec, d.Annotations, d.Finalizers, d.OwnerReferences)
	}
	for _, s := range slices.Items {
		state["slice "+s.Name] = text(s.Objects, s.Labels, s.Finalizers, s.OwnerReferences)
	}
	for _, s := range secrets.Items {
		state["secret "+s.Namespace+"/"+s.Name] = text(s.Type, s.Immutable, s.Data, s.Labels, s.Finalizers, s.OwnerReferences)
	}
	return state
}

// TestDeployAfterACrash: if a process dies before or after any of its writes takes effect, the next
// one reaches the same result, with and without slices and Secrets (invariant 4). The deployment
// always records whether it might have slices or Secrets: a Package that is changed or deleted
// after a crash would otherwise leave them behind, with their finalizers.
func TestDeployAfterACrash(t *testing.T) {
	t.Parallel()
	plain := sensitiveContent("a")
	plain.Sealing = nil
	each := corev1alpha1.ChunkingStrategyEachObject
	for name, tc := range map[string]struct {
		strategies []string // of each version
		versions   []*load.Content
	}{
		"nothing sensitive":       {[]string{each, each}, []*load.Content{plain, plain}},
		"sensitive":               {[]string{"", ""}, []*load.Content{sensitiveContent("a"), sensitiveContent("b")}},
		"in slices":               {[]string{each, each}, []*load.Content{sensitiveContent("a"), sensitiveContent("b")}},
		"the value alone changes": {[]string{each, each}, []*load.Content{sensitiveContent("a1"), sensitiveContent("a2")}},
		"from plain to sensitive": {[]string{each, each}, []*load.Content{plain, sensitiveContent("a")}},
		"the first sensitive":     {[]string{"", ""}, []*load.Content{plain, sensitiveContent("a")}},
		"the first in slices":     {[]string{"", each}, []*load.Content{plain, plain}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, writes := deployAll(t, tc.strategies, tc.versions, -1, false)
			if writes < 2 {
				t.Fatalf("%d writes", writes)
			}
			for at := range writes {
				for _, effect := range []bool{false, true} {
					got, _ := deployAll(t, tc.strategies, tc.versions, at, effect)
					require.Equal(t, want, got, fmt.Sprintf("a crash at write %d, which took effect: %t; the end is another", at, effect))
				}
			}
		})
	}
}

var errCrash = errors.New("crash")

// deployAll deploys one version after the other in a new cluster. It returns the stored objects and
// the number of writes. The process dies at write number crash.
func deployAll(t *testing.T, strategies []string, versions []*load.Content, crash int, effect bool) (state map[string]string, writes int) {
	t.Helper()
	server := secretServer(t)
	var begun atomic.Int64 // slices are created several at a time
	dies := func(write func() error) error {
		if begun.Add(1)-1 != int64(crash) {
			return write()
		}
		if effect {
			if err := write(); err != nil {
				return err
			}
		}
		return errCrash
	}
	c := interceptor.NewClient(server, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return dies(func() error {
				obj.SetUID(types.UID(fmt.Sprintf("uid of %T", obj)))
				return c.Create(ctx, obj, opts...)
			})
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return dies(func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
	})
	for i, content := range versions {
		pkg := newPackage(func(p *corev1alpha1.Package) {
			p.Annotations = map[string]string{corev1alpha1.ChunkingStrategyAnnotation: strategies[i]}
		})
		for try := 0; ; try++ {
			err := passOver(t, c, server, pkg).writeContent(t.Context(), content)
			requireMarks(t, server)
			if err == nil {
				break
			}
			if !errors.Is(err, errCrash) || try > 0 {
				t.Fatalf("try %d: %v", try, err)
			}
		}
	}
	return stateOfAll(t, server), int(begun.Load())
}

// requireMarks checks that the deployment has the annotations of its slices and Secrets.
func requireMarks(t *testing.T, server client.Client) {
	t.Helper()
	deployments := &corev1alpha1.ObjectDeploymentList{}
	require.NoError(t, server.List(t.Context(), deployments))
	for annotation, list := range map[string]client.ObjectList{
		corev1alpha1.SlicedAnnotation: &corev1alpha1.ObjectSliceList{}, corev1alpha1.SecretSlicedAnnotation: &corev1.SecretList{},
	} {
		require.NoError(t, server.List(t.Context(), list))
		if meta.LenList(list) > 0 && (len(deployments.Items) != 1 || deployments.Items[0].Annotations[annotation] != "true") {
			t.Errorf("%d of %T, and no annotation %s", meta.LenList(list), list, annotation)
		}
	}
}

// TestWhereSecretsGo: Secrets are in the namespace of the Package or, for cluster kinds, in the
// manager's. The deployment does not contain the value.
func TestWhereSecretsGo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pkg             corev1alpha1.GenericPackage
		namespace, kind string
	}{
		"Package": {newPackage(), "team", "ObjectDeployment"},
		"ClusterPackage": {
			&corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "pkg-uid"}, Spec: corev1alpha1.PackageSpec{Image: image}},
			"system", "ClusterObjectDeployment",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := secretServer(t)
			s := passOver(t, server, server, tc.pkg)
			require.NoError(t, s.writeContent(t.Context(), sensitiveContent("hunter2")))
			secrets := &corev1.SecretList{}
			if err := server.List(t.Context(), secrets); err != nil || len(secrets.Items) != 1 {
				t.Fatalf("%d Secrets, error %v", len(secrets.Items), err)
			}
			secret := secrets.Items[0]
			if got := s.dep.ObjectDeploymentSpec().Template.Spec.Phases[0].SecretSlices; len(got) != 1 || got[0] != secret.Name {
				t.Errorf("the template names %v, the Secret is %s", got, secret.Name)
			}
			if secret.Namespace != tc.namespace || secret.Labels[corev1alpha1.SliceOwnerKindLabel] != tc.kind {
				t.Errorf("the Secret is in %s with %v", secret.Namespace, secret.Labels)
			}
			if text := fmt.Sprint(s.dep); strings.Contains(text, "hunter2") || s.dep.GetAnnotations()[corev1alpha1.SecretSlicedAnnotation] != "true" {
				t.Errorf("the deployment is %s", text)
			}
		})
	}
}

// TestRefusedSecretIsNotQuoted: a message of a webhook about a Secret that the engine
// writes is not repeated; an error that a user can correct is.
func TestRefusedSecretIsNotQuoted(t *testing.T) {
	t.Parallel()
	refused := &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: 403, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "scan.example.com" denied the request: it holds hunter2`,
	}}
	server := secretServer(t)
	refusing := interceptor.NewClient(server, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if _, secret := obj.(*corev1.Secret); secret {
				return refused
			}
			return c.Create(ctx, obj, opts...)
		},
	})
	err := passOver(t, refusing, server, newPackage()).writeContent(t.Context(), sensitiveContent("hunter2"))
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "scan.example.com") {
		t.Errorf("the error is %v", err)
	}
	dep := &corev1alpha1.ObjectDeployment{}
	require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(newPackage()), dep))
	require.Equal(t, 0, len(dep.Spec.Template.Spec.Phases), "a template names a Secret that does not exist")

	content := sensitiveContent("hunter2")
	_, made, err := objectslices.Split("shop", "", content.Template.Phases, content.Sealing)
	require.NoError(t, err)
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: made[0].Name}, StringData: map[string]string{"x": "hunter2"}}
	require.NoError(t, server.Create(t.Context(), theirs))
	err = passOver(t, server, server, newPackage()).writeContent(t.Context(), content)
	if err == nil || !strings.Contains(err.Error(), "other content: delete it") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v", err)
	}
}

func secretServer(t *testing.T) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1alpha1.AddToScheme, corev1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	return fake.NewClientBuilder().WithScheme(scheme).Build()
}

// TestKeyStaysTheSame: each Package keeps one key over restarts, lost answers and Packages of the
// same name in the other scope; a lost key is replaced.
func TestKeyStaysTheSame(t *testing.T) {
	t.Parallel()
	server := secretServer(t)
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "shop", UID: "package"}}
	cluster := &corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "cluster-package"}}
	process := func(c client.Client) *Reconciler {
		r, _ := newReconciler(t)
		r.Client, r.Reader = c, server
		return r
	}
	of := func(r *Reconciler, pkg corev1alpha1.GenericPackage) []byte {
		t.Helper()
		key, err := r.hashKeyOf(t.Context(), pkg, r.stateOf(pkg))
		require.NoError(t, err)
		if len(key) != keyBytes {
			t.Fatalf("a key of %d bytes", len(key))
		}
		return key
	}
	lost := errors.New("the connection broke")
	failing := interceptor.NewClient(server, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
		if err := c.Create(ctx, obj, opts...); err != nil {
			return err
		}
		return lost
	}})
	if _, err := process(failing).hashKeyOf(t.Context(), pkg, &state{}); !errors.Is(err, lost) {
		t.Fatalf("a lost answer: %v", err)
	}
	before := &corev1.SecretList{}
	if err := server.List(t.Context(), before); err != nil || len(before.Items) != 1 {
		t.Fatalf("%d Secrets, error %v", len(before.Items), err)
	}
	first := process(server)
	key := of(first, pkg)
	if !bytes.Equal(key, before.Items[0].Data[keyData]) {
		t.Error("the key whose answer was lost is not used")
	}
	if !bytes.Equal(key, of(first, pkg)) || !bytes.Equal(key, of(process(server), pkg)) {
		t.Error("the key changed")
	}
	if bytes.Equal(key, of(first, cluster)) {
		t.Error("two Packages have one key")
	}
	for _, secret := range before.Items {
		require.NoError(t, server.Delete(t.Context(), &secret))
	}
	if bytes.Equal(key, of(process(server), pkg)) {
		t.Error("a lost key came back")
	}
}

// TestKeyOfAnother: a key that was left by a former Package is not used, and a
// Secret of another owner is neither used nor touched.
func TestKeyOfAnother(t *testing.T) {
	t.Parallel()
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop", UID: "package"}}
	former := pkg.DeepCopy()
	former.UID = "former"
	server := secretServer(t)
	old, err := (&Reconciler{Client: server, Reader: server}).hashKeyOf(t.Context(), former, &state{})
	require.NoError(t, err)
	key, err := (&Reconciler{Client: server, Reader: server}).hashKeyOf(t.Context(), pkg, &state{})
	if err != nil || bytes.Equal(key, old) {
		t.Errorf("the key of a former Package is used; error %v", err)
	}

	server = secretServer(t)
	mine := (&Reconciler{}).hashKeySecret(pkg, nil)
	theirs := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: mine.Namespace, Name: mine.Name}, Data: map[string][]byte{keyData: bytes.Repeat([]byte("secret-value"), 3)[:32]},
		Immutable: ptr.To(true),
	}
	require.NoError(t, server.Create(t.Context(), theirs))
	_, err = (&Reconciler{Client: server, Reader: server}).hashKeyOf(t.Context(), pkg, &state{})
	if err == nil || !strings.Contains(err.Error(), mine.Name) || strings.Contains(err.Error(), "secret-value") {
		t.Errorf("the error is %v", err)
	}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
		t.Errorf("the Secret of a user was deleted: %v", err)
	}
}

// A stored deployment equals the made one, with defaults and in any order of keys. Any difference
// means that another client edited it, or that a crash left it incomplete.
func TestEdited(t *testing.T) {
	t.Parallel()
	phases := func(d *corev1alpha1.ObjectDeployment) *[]corev1alpha1.ObjectSetTemplatePhase {
		return &d.Spec.Template.Spec.Phases
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*corev1alpha1.ObjectDeployment)
		want   bool
	}{
		"as it was made": {reason: "usual", change: func(*corev1alpha1.ObjectDeployment) {}},
		"stored": {reason: "the API server sorts keys and fills defaults in", change: func(d *corev1alpha1.ObjectDeployment) {
			(*phases(d))[0].Objects[0].Object = raw(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`)
			(*phases(d))[0].Objects[0].CollisionProtection = corev1alpha1.CollisionProtectionPrevent
		}},
		"paused by hand": {reason: "settings are followed without a load", change: func(d *corev1alpha1.ObjectDeployment) { d.Spec.Paused = true }},
		"stored without empty fields": {reason: "the API server leaves it out", change: func(d *corev1alpha1.ObjectDeployment) {
			(*phases(d))[0].Objects[0].Object = raw(`{"apiVersion":"v1","data":null,"kind":"ConfigMap","metadata":{"creationTimestamp":null,"labels":{},"name":"a","other":1}}`)
		}},
		"edited": {reason: "it differs from the package", want: true, change: func(d *corev1alpha1.ObjectDeployment) {
			(*phases(d))[0].Objects[0].Object = raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`)
		}},
		"not complete": {reason: "the process ended before it wrote the template that names slices", want: true, change: func(d *corev1alpha1.ObjectDeployment) {
			*phases(d) = nil
		}},
		"of an earlier engine": {reason: "nothing was recorded", change: func(d *corev1alpha1.ObjectDeployment) {
			*phases(d) = nil
			delete(d.Annotations, corev1alpha1.TemplateDigestAnnotation)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pkg := unpackedPackage()
			dep := shaped(t, deployment.New(pkg), pkg, newContent()).(*corev1alpha1.ObjectDeployment)
			memory := &deployment.Template{}
			dep.UID, dep.Generation = "dep-uid", 1
			if known, err := memory.Drifted(dep); known || err != nil {
				t.Fatalf("the deployment just made is edited: %t, %v", known, err)
			}
			tc.change(dep)
			dep.Generation++
			got, err := memory.Drifted(dep)
			if err != nil || got != tc.want {
				t.Errorf("edited = %t, %v: %s", got, err, tc.reason)
			}
			want := stepSync
			if tc.want {
				want = stepLoad
			}
			if step, _ := decide(view{pkg: pkg, choice: imageChoice, dep: dep, fingerprint: printOf(pkg), drifted: got, now: start}); step != want {
				t.Errorf("step %d, want %d", step, want)
			}
		})
	}
	pkg := unpackedPackage()
	dep := shaped(t, deployment.New(pkg), pkg, newContent())
	for name, tc := range map[string]struct {
		v    view
		want step
	}{
		"repaired a moment ago": {view{pkg: pkg, choice: imageChoice, repaired: start.Add(-time.Second)}, stepSync},
		"repaired before":       {view{pkg: pkg, choice: imageChoice, repaired: start.Add(-limits.RepairInterval)}, stepLoad},
		"paused":                {view{pkg: unpackedPackage(paused), choice: imageChoice}, stepSync},
	} {
		tc.v.dep, tc.v.fingerprint, tc.v.drifted, tc.v.now = dep, printOf(pkg), true, start
		if got, _ := decide(tc.v); got != tc.want {
			t.Errorf("%s: step %d, want %d", name, got, tc.want)
		}
	}
}

// shaped is a deployment as a Package has it.
func shaped(t *testing.T, dep corev1alpha1.GenericObjectDeployment, pkg *corev1alpha1.Package, content *load.Content) corev1alpha1.GenericObjectDeployment {
	t.Helper()
	dep = dep.DeepCopyObject().(corev1alpha1.GenericObjectDeployment)
	Accounts{}.copySettings(dep, pkg)
	require.NoError(t, deployment.Fill(dep, pkg, printOf(pkg), content, content.Template))
	return dep
}
