package packages

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
)

const (
	// keyBytes is the length of a hash key, and keyData is its key in the Secret.
	keyBytes = 32
	keyData  = "key"
)

// hashKeyOf returns the key of hashes of sensitive input, such as names of Secrets. It is kept in a
// Secret; when that is lost, the package is rendered with another key, which changes no object of
// it.
func (r *Reconciler) hashKeyOf(ctx context.Context, pkg corev1alpha1.GenericPackage, st *state) ([]byte, error) {
	if st.hashKey != nil {
		return st.hashKey, nil
	}

	key, err := r.readHashKey(ctx, pkg)
	if apierrors.IsNotFound(err) {
		key, err = r.createHashKey(ctx, pkg)
	}
	if apierrors.IsAlreadyExists(err) {
		key, err = r.readHashKey(ctx, pkg) // the response to an earlier attempt was lost
	}
	if err != nil {
		return nil, fmt.Errorf("key for sensitive values of %s: %w", pkg.GetName(), err)
	}

	st.hashKey = key
	return key, nil
}

// readHashKey reads the key, and deletes the key of a former Package with the same name.
func (r *Reconciler) readHashKey(ctx context.Context, pkg corev1alpha1.GenericPackage) ([]byte, error) {
	found := &corev1.Secret{}
	if err := r.Reader.Get(ctx, keyOf(r.hashKeySecret(pkg, nil)), found); err != nil {
		return nil, apply.Reduced(err)
	}

	switch key := found.Data[keyData]; {
	case found.Type != corev1alpha1.HashKeyType:
		return nil, fmt.Errorf("the Secret %s exists and is not of the type %s: delete or rename it", found.Name, corev1alpha1.HashKeyType)
	case metav1.IsControlledBy(found, pkg) && len(key) == keyBytes && found.DeletionTimestamp == nil:
		return key, nil
	}

	err := r.Client.Delete(ctx, found, client.Preconditions{UID: ptr.To(found.UID)})
	if err == nil || apierrors.IsNotFound(err) {
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), found.Name)
	}
	return nil, apply.Reduced(err)
}

// createHashKey makes a random key and stores it. An error does not contain the Secret.
func (r *Reconciler) createHashKey(ctx context.Context, pkg corev1alpha1.GenericPackage) ([]byte, error) {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails, by its contract
	if err := r.Client.Create(ctx, r.hashKeySecret(pkg, key)); err != nil {
		return nil, apply.Reduced(err)
	}
	return key, nil
}

// hashKeySecret returns the Secret of a package's key. It is immutable, because another key would
// rename every slice with sensitive values.
func (r *Reconciler) hashKeySecret(pkg corev1alpha1.GenericPackage, key []byte) *corev1.Secret {
	name := pkg.GetName() + ".hash-key.package-operator.run"
	if pkg.GetNamespace() == "" {
		name = pkg.GetName() + ".hash-key.clusterpackage.package-operator.run"
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.namespaceOf(pkg), Name: name,
			OwnerReferences: []metav1.OwnerReference{deployment.ControllerReference("Package", pkg)},
		},
		Type: corev1alpha1.HashKeyType, Immutable: ptr.To(true), Data: map[string][]byte{keyData: key},
	}
}
