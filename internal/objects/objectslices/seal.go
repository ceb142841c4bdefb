package objectslices

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// Sealing selects which objects of a revision with sensitive values are kept in
// Secrets. A nil Sealing selects none.
type Sealing struct {
	// Key is readable from Secrets alone. Without it, a name reveals nothing of
	// the content.
	Key []byte
	// Holds reports whether the object at this place holds a sensitive value.
	// Secrets are selected in any case: a value may be in one in another form.
	Holds func(phase, object int) bool
}

// part takes the selected objects of a phase out.
func (s *Sealing) part(phase int, items []item) (plain, sealed []item) {
	if s == nil {
		return items, nil
	}
	for i := range items {
		if items[i].secret || s.Holds != nil && s.Holds(phase, i) {
			sealed = append(sealed, items[i])
		} else {
			plain = append(plain, items[i])
		}
	}
	return plain, sealed
}

// seal names a slice after its content, by two steps of HMAC: a key for this content
// alone, made with the deployment's key, and the name, made with that. The first is kept
// beside the content, so that a reader of both can verify that the name is theirs, also
// where the deployment's key was lost.
func (s *Sealing) seal(deployment string, items []item) (Slice, error) {
	slice := Slice{Objects: contents(items)}
	content, err := json.Marshal(slice.Objects)
	if err != nil {
		return Slice{}, fmt.Errorf("encode objects for a Secret: %w", err)
	}
	if len(content) > limits.SecretSliceBytes {
		key, _ := keyOf(items[0].object.Object.Raw)
		return Slice{}, fmt.Errorf("%s has %d bytes as JSON; in a package with sensitive values, of which Secrets are kept in Secrets, an object has at most %d: split it",
			key, len(content), limits.SecretSliceBytes)
	}
	slice.Key = mac(s.Key, content)
	slice.Name = named(deployment, sealOf(slice.Key, content))
	return slice, nil
}

// sealBytes is the length of the part of a name that stands for the content. A user who
// may write Secrets may not therefore write packages: it must be too long for anyone to
// find other content for it.
const sealBytes = 16

func sealOf(key, content []byte) []byte { return mac(key, content)[:sealBytes] }

func mac(key, content []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(content)
	return h.Sum(nil)
}

// Keys in the data of a Secret that holds objects.
const (
	dataObjects = "objects"
	dataKey     = "key"
)

// Secret returns the Secret that holds the objects, without its owner.
func (s *Slice) Secret() (*corev1.Secret, error) {
	content, err := json.Marshal(s.Objects)
	if err != nil {
		return nil, fmt.Errorf("encode objects for a Secret: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name},
		Type:       corev1alpha1.SecretSliceType, Immutable: ptr.To(true),
		Data: map[string][]byte{dataObjects: content, dataKey: s.Key},
	}, nil
}

// Open returns the objects that a Secret holds. It fails where the Secret is none
// of ours, or where its content is not what its name stands for. The error quotes
// nothing of it.
func Open(secret *corev1.Secret) ([]corev1alpha1.ObjectSetObject, error) {
	if secret.Type != corev1alpha1.SecretSliceType {
		return nil, fmt.Errorf("the Secret %s holds no objects: its type is not %s", secret.Name, corev1alpha1.SecretSliceType)
	}
	content, key := secret.Data[dataObjects], secret.Data[dataKey]
	if want := named("", sealOf(key, content)); len(key) != sha256.Size || !strings.HasSuffix(secret.Name, want) {
		return nil, fmt.Errorf("the Secret %s does not hold what it is named after: someone recreated it", secret.Name)
	}
	var objects []corev1alpha1.ObjectSetObject
	if json.Unmarshal(content, &objects) != nil {
		return nil, errors.New("the Secret " + secret.Name + " holds no list of objects")
	}
	return objects, nil
}
