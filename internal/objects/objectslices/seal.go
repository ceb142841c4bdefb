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

// Sealing selects the objects of a revision with sensitive values that are kept in Secrets. A nil
// Sealing selects none.
type Sealing struct {
	// Key is readable only from Secrets. Without it, a name reveals nothing about the content.
	Key []byte
	// Holds reports whether the object at this place holds a sensitive value. Secrets are always
	// selected, because they can hold a value in another form.
	Holds func(phase, object int) bool
}

// part separates the selected objects of a phase from the others.
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

// seal names a slice after its content in two steps of HMAC. The deployment's key and the content
// give a key for this content alone, and that key and the content give the name. The slice stores
// its key along with the content, so that a reader of both can verify the name even if the
// deployment's key was lost.
func (s *Sealing) seal(deployment string, items []item) (Slice, error) {
	slice := Slice{Objects: contents(items)}
	content, err := json.Marshal(slice.Objects)
	if err != nil {
		return Slice{}, fmt.Errorf("encode objects for a Secret: %w", err)
	}

	if len(content) > limits.SecretSliceBytes {
		key, _ := keyOf(items[0].object.Object.Raw)
		return Slice{}, fmt.Errorf("%s has %d bytes as JSON; an object that is kept in a Secret because of sensitive values can have at most %d: split it",
			key, len(content), limits.SecretSliceBytes)
	}

	slice.Key = mac(s.Key, content)
	slice.Name = named(deployment, sealOf(slice.Key, content))
	return slice, nil
}

// sealBytes is the length of the part of a name that represents the content. The right to write
// Secrets must not imply the right to write packages, so it has to be long enough that no attacker
// can find other content with the same name.
const sealBytes = 16

func sealOf(key, content []byte) []byte { return mac(key, content)[:sealBytes] }

func mac(key, content []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(content)
	return h.Sum(nil)
}

// The keys in the data of a Secret that holds objects.
const (
	dataObjects = "objects"
	dataKey     = "key"
)

// Secret returns the Secret that holds the objects. It has no owner yet.
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

// Open returns the objects that a Secret holds. It fails if the Secret is not one of ours, or if
// its name does not match its content. The error quotes no content.
func Open(secret *corev1.Secret) ([]corev1alpha1.ObjectSetObject, error) {
	if secret.Type != corev1alpha1.SecretSliceType {
		return nil, fmt.Errorf("the Secret %s holds no objects: its type is not %s", secret.Name, corev1alpha1.SecretSliceType)
	}
	content, key := secret.Data[dataObjects], secret.Data[dataKey]
	if want := named("", sealOf(key, content)); len(key) != sha256.Size || !strings.HasSuffix(secret.Name, want) {
		return nil, fmt.Errorf("the content of Secret %s does not match its name: someone recreated it", secret.Name)
	}
	var objects []corev1alpha1.ObjectSetObject
	if json.Unmarshal(content, &objects) != nil {
		return nil, errors.New("the Secret " + secret.Name + " does not hold a list of objects")
	}
	return objects, nil
}
