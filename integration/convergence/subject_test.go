package convergence_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// subject is a Package or a ClusterPackage, and its last desired state.
type subject struct {
	scope corev1alpha1.Scope
	// namespace is the namespace of the Package, and objects the namespace of its objects.
	namespace, name, objects string
	// spec is the desired spec; wanted means that the Package should exist.
	spec   corev1alpha1.PackageSpec
	wanted bool
	// pending means that it has to be created as soon as the former one no longer exists.
	pending bool
	// orphaned means that a deletion might have left objects without a controller; ownerless
	// contains the names of objects that lost their owner.
	orphaned  bool
	ownerless map[string]bool
	// config contains the values of spec.config.
	config map[string]string
}

func newSubject(scope corev1alpha1.Scope, namespace, name, objects string, images []image) *subject {
	s := &subject{scope: scope, namespace: namespace, name: name, objects: objects, wanted: true, pending: true, config: map[string]string{}, ownerless: map[string]bool{}}
	s.spec.Image = images[0].reference
	if scope == corev1alpha1.ScopeCluster {
		s.namespace, s.spec.DefaultNamespace = "", objects
	}
	return s
}

// sources returns the namespace of the subject's values.
func (s *subject) sources() string {
	if s.scope == corev1alpha1.ScopeCluster {
		return corev1alpha1.DefaultNamespace
	}
	return s.namespace
}

func (s *subject) String() string { return s.scope.Kind("Package") + " " + s.name }

// object returns the Package in its desired state.
func (s *subject) object() corev1alpha1.GenericPackage {
	pkg := s.scope.NewPackage()
	pkg.SetNamespace(s.namespace)
	pkg.SetName(s.name)
	s.spec.DeepCopyInto(pkg.PackageSpec())
	return pkg
}

// configure changes a value of spec.config.
func (s *subject) configure(key, value string) {
	s.config[key] = value
	raw := "{"
	for _, k := range []string{"size", "note", "gate"} {
		if v := s.config[k]; v != "" {
			if len(raw) > 1 {
				raw += ","
			}
			raw += fmt.Sprintf("%q: %s", k, v)
		}
	}
	s.spec.Config = &runtime.RawExtension{Raw: []byte(raw + "}")}
}

// apply writes the desired spec, or creates a pending Package.
func (s *subject) apply(ctx context.Context) error {
	if s.pending || !s.wanted {
		return s.create(ctx)
	}
	live := s.scope.NewPackage()
	if err := env.Client.Get(ctx, client.ObjectKeyFromObject(s.object()), live); err != nil {
		return err
	}
	before := live.DeepCopyObject().(client.Object)
	s.spec.DeepCopyInto(live.PackageSpec())
	return env.Client.Patch(ctx, live, client.MergeFrom(before))
}

// create creates a pending Package if the former one no longer exists.
func (s *subject) create(ctx context.Context) error {
	if !s.pending {
		return nil
	}
	err := env.Client.Create(ctx, s.object())
	if err == nil {
		s.pending = false
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// remove deletes the Package. If again is true, it has to be recreated.
func (s *subject) remove(ctx context.Context, again bool, propagation metav1.DeletionPropagation) error {
	s.wanted = again
	if s.pending {
		s.pending = again
		return nil
	}
	s.pending = again
	s.orphaned = s.orphaned || propagation == metav1.DeletePropagationOrphan || s.spec.DeletionPolicy == corev1alpha1.DeletionPolicyOrphan
	return client.IgnoreNotFound(env.Client.Delete(ctx, s.object(), client.PropagationPolicy(propagation)))
}

// valueSources returns the possible elements of spec.configFrom.
func (s *subject) valueSources() []corev1alpha1.ValueSource {
	return []corev1alpha1.ValueSource{
		{ConfigMapKeyRef: &corev1alpha1.ConfigMapKeyReference{Name: s.name + "-values", Key: "values", Optional: true}},
		{SecretKeyRef: &corev1alpha1.SecretKeyReference{Name: s.name + "-login", Key: "values", Optional: true, Sensitive: ptr.To(true)}},
	}
}

// write puts content into a source.
func (s *subject) write(ctx context.Context, kind, text string) error {
	var obj client.Object
	meta := metav1.ObjectMeta{Namespace: s.sources(), Name: s.name + "-values"}
	if kind == "Secret" {
		meta.Name = s.name + "-login"
		obj = &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"values": []byte(text)}}
	} else {
		obj = &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"values": text}}
	}
	err := env.Client.Update(ctx, obj)
	if apierrors.IsNotFound(err) {
		return env.Client.Create(ctx, obj)
	}
	return err
}

// forget removes a source; both are optional.
func (s *subject) forget(ctx context.Context, kind string) error {
	var obj client.Object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.sources(), Name: s.name + "-values"}}
	if kind == "Secret" {
		obj = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.sources(), Name: s.name + "-login"}}
	}
	return client.IgnoreNotFound(env.Client.Delete(ctx, obj))
}

// leaves reports whether an object without an owner might have been left behind.
func (s *subject) leaves(name string) bool { return s.orphaned || s.ownerless[name] }

// heal reverts changes that keep a package from its desired state. Other clients can continue to
// change everything else.
func (s *subject) heal() {
	s.spec.Paused, s.spec.DriftPolicy = false, ""
	if s.config["gate"] != "" {
		s.configure("gate", `"open"`)
	}
	if s.orphaned || len(s.ownerless) > 0 {
		s.spec.CollisionProtection = corev1alpha1.CollisionProtectionIfNoController
	}
	s.spec.DeletionPolicy, s.spec.ConfigFrom = "", s.valueSources()
	if !s.wanted {
		s.wanted, s.pending = true, true
	}
}

// patchesOf returns random patches for a spec.
func patchesOf(random *rand.Rand) []corev1alpha1.PackagePatch {
	target := &corev1alpha1.PatchTarget{Kind: "ConfigMap", Name: ".*-shown"}
	switch random.IntN(3) {
	case 0:
		return nil
	case 1:
		return []corev1alpha1.PackagePatch{{Target: target, Patch: "data: {patched: merged}"}}
	}
	return []corev1alpha1.PackagePatch{
		{Target: target, Patch: "- {op: replace, path: /data/size, value: patched}"},
		{Target: target, Patch: fmt.Sprintf("data: {more: %q}", fmt.Sprint(random.IntN(3)))},
	}
}

func metadataOf(random *rand.Rand) *corev1alpha1.CommonMetadata {
	switch random.IntN(3) {
	case 0:
		return nil
	case 1:
		return &corev1alpha1.CommonMetadata{Labels: map[string]string{"team": "blue"}}
	}
	return &corev1alpha1.CommonMetadata{Labels: map[string]string{"team": "red", "tier": "one"}, Annotations: map[string]string{"note": "common"}}
}

func limitOf(random *rand.Rand) *int32 {
	return []*int32{nil, ptr.To(int32(0)), ptr.To(int32(2))}[random.IntN(3)]
}
