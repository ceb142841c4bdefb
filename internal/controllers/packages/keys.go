package packages

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
)

// keys has for each Package with sensitive input the key by which that is hashed
// wherever a hash can be read: in the names of Secrets. What
// status.unpackedHash covers of sources are their versions. It is kept in a Secret of the Package. When that is lost, a new
// one is made and the package rendered again; no object of it changes by that.
type keys struct {
	client client.Client
	reader client.Reader
	// namespace is the manager's.
	namespace string

	mu    sync.Mutex
	byUID map[types.UID][]byte
}

const (
	// keyBytes is the length of a key.
	keyBytes = 32
	// keyData is where a Secret has it.
	keyData = "key"
)

// namespaceOf is where the Secrets of a Package are.
func (k *keys) namespaceOf(pkg corev1alpha1.GenericPackage) string {
	if pkg.GetNamespace() == "" {
		return k.namespace
	}
	return pkg.GetNamespace()
}

// of returns the key of a Package, which is made where there is none.
func (k *keys) of(ctx context.Context, pkg corev1alpha1.GenericPackage) ([]byte, error) {
	k.mu.Lock()
	known := k.byUID[pkg.GetUID()]
	k.mu.Unlock()
	if known != nil {
		return known, nil
	}
	key, err := k.read(ctx, pkg)
	if apierrors.IsNotFound(err) {
		key, err = k.create(ctx, pkg)
	}
	if apierrors.IsAlreadyExists(err) {
		key, err = k.read(ctx, pkg) // the answer to an earlier attempt was lost
	}
	if err != nil {
		return nil, fmt.Errorf("key for sensitive values of %s: %w", pkg.GetName(), err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byUID == nil {
		k.byUID = map[types.UID][]byte{}
	}
	k.byUID[pkg.GetUID()] = key
	return key, nil
}

// read reads the key. One that a former Package of the name has left is removed:
// the garbage collector would take it away later.
func (k *keys) read(ctx context.Context, pkg corev1alpha1.GenericPackage) ([]byte, error) {
	want, found := k.secretFor(pkg, nil), &corev1.Secret{}
	if err := k.reader.Get(ctx, client.ObjectKeyFromObject(want), found); err != nil {
		return nil, apply.Reduced(err)
	}
	switch key := found.Data[keyData]; {
	case found.Type != corev1alpha1.HashKeyType:
		return nil, fmt.Errorf("the Secret %s exists and is not of the type %s: delete or rename it", found.Name, corev1alpha1.HashKeyType)
	case metav1.IsControlledBy(found, pkg) && len(key) == keyBytes && found.DeletionTimestamp == nil:
		return key, nil
	}
	err := k.client.Delete(ctx, found, client.Preconditions{UID: ptr.To(found.UID)})
	if err == nil || apierrors.IsNotFound(err) {
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), found.Name)
	}
	return nil, apply.Reduced(err)
}

func (k *keys) create(ctx context.Context, pkg corev1alpha1.GenericPackage) ([]byte, error) {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails, by its contract
	if err := k.client.Create(ctx, k.secretFor(pkg, key)); err != nil {
		return nil, apply.Reduced(err)
	}
	return key, nil
}

func (k *keys) secretFor(pkg corev1alpha1.GenericPackage, key []byte) *corev1.Secret {
	kind := corev1alpha1.ScopeOf(pkg.GetNamespace()).Kind("Package")
	name := pkg.GetName() + ".hash-key.package-operator.run"
	if pkg.GetNamespace() == "" {
		name = pkg.GetName() + ".hash-key.clusterpackage.package-operator.run"
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.namespaceOf(pkg), Name: name,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: corev1alpha1.GroupVersion.String(), Kind: kind, Name: pkg.GetName(), UID: pkg.GetUID(), Controller: ptr.To(true),
			}},
		},
		Type: corev1alpha1.HashKeyType, Immutable: ptr.To(true), Data: map[string][]byte{keyData: key},
	}
}

// forget drops the key of a Package that is gone.
func (k *keys) forget(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byUID, uid)
}
