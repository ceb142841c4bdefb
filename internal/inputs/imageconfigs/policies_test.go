package imageconfigs_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/signed"
)

const namespace = "system"

func configOf(authorities ...corev1alpha1.ImageAuthority) []corev1alpha1.ImageConfig {
	config := corev1alpha1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	config.Spec.MatchImages = []corev1alpha1.ImageMatch{{Prefix: "ghcr.io/acme"}}
	config.Spec.Verification = &corev1alpha1.ImageVerification{Authorities: authorities}
	return []corev1alpha1.ImageConfig{config}
}

// Keys are read only from the manager's namespace. Errors about missing ones do not quote content.
func TestPolicies(t *testing.T) {
	t.Parallel()
	own, virtual := signed.NewPair(t), signed.NewSigstore(t)
	at := &corev1alpha1.ImageKeyRef{Name: "keys", Key: "cosign.pub"}
	secret := corev1alpha1.ImageAuthority{Name: "s", Key: &corev1alpha1.ImageAuthorityKey{SecretRef: at}}
	configMap := corev1alpha1.ImageAuthority{Name: "c", Key: &corev1alpha1.ImageAuthorityKey{ConfigMapRef: at}}
	inline := corev1alpha1.ImageAuthority{Name: "i", Key: &corev1alpha1.ImageAuthorityKey{PEM: string(own.Public), NotAfter: &metav1.Time{Time: time.Now()}}}
	keyless := corev1alpha1.ImageAuthority{Name: "k", Keyless: &corev1alpha1.ImageAuthorityKeyless{
		Identities: []corev1alpha1.ImageIdentity{{Issuer: signed.Issuer, Subject: signed.Subject}}, TrustedRootRef: corev1alpha1.ImageKeyRef{Name: "root", Key: "json"},
	}}
	refs := imageconfigs.Refs(configOf(secret, configMap, inline, keyless), namespace)
	if len(refs) != 3 {
		t.Fatalf("refs: %v", refs)
	}

	for _, ref := range refs {
		if ref.Namespace != namespace {
			t.Errorf("%s is in another namespace", ref)
		}
	}

	key := &sources.Object{Data: map[string][]byte{"cosign.pub": own.Public}}
	ref := sources.Ref{Kind: sources.KindSecret, Namespace: namespace, Name: "keys"}
	for name, tc := range map[string]struct {
		authority corev1alpha1.ImageAuthority
		objects   map[sources.Ref]*sources.Object
		problem   string
	}{
		"Secret":      {secret, map[sources.Ref]*sources.Object{ref: key}, ""},
		"no Secret":   {secret, nil, "the authority s cannot be used: there is no Secret system/keys"},
		"no key":      {secret, map[sources.Ref]*sources.Object{ref: {}}, "Secret system/keys has no key cosign.pub"},
		"refused":     {secret, map[sources.Ref]*sources.Object{ref: {Refused: "it has a token"}}, "Secret system/keys is not read: it has a token"},
		"no public":   {secret, map[sources.Ref]*sources.Object{ref: {Data: map[string][]byte{"cosign.pub": own.Private}}}, "the PEM text is not a public key"},
		"ConfigMap":   {configMap, map[sources.Ref]*sources.Object{{Kind: sources.KindConfigMap, Namespace: namespace, Name: "keys"}: key}, ""},
		"inline":      {inline, nil, ""},
		"keyless":     {keyless, map[sources.Ref]*sources.Object{{Kind: sources.KindConfigMap, Namespace: namespace, Name: "root"}: {Data: map[string][]byte{"json": virtual.Root()}}}, ""},
		"no root":     {keyless, nil, "there is no ConfigMap system/root"},
		"not a thing": {corev1alpha1.ImageAuthority{Name: "n"}, nil, "neither key nor keyless"},
	} {
		policies := imageconfigs.Policies(configOf(tc.authority), namespace, tc.objects)
		_, problem := policies[0].Problem()
		if (problem == "") != (tc.problem == "") || !strings.Contains(problem, tc.problem) || strings.Contains(problem, "BEGIN") {
			t.Errorf("%s: %q, want %q", name, problem, tc.problem)
		}
		if v := policies[0].Verification; v.Mode != imagepolicy.Enforce || len(v.Authorities) != 1 {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	store, now := &imageconfigs.Store{}, time.Now()
	if _, err := store.Get(); !errors.Is(err, imageconfigs.ErrNotRead) {
		t.Errorf("before they were read: %v", err)
	}

	failure := errors.New("Secret lockstep/key cannot be read: it is forbidden")
	if !store.Fail(failure) || store.Fail(failure) {
		t.Error("the reason why they cannot be read must not be a change each time")
	}
	if _, err := store.Get(); !errors.Is(err, failure) {
		t.Errorf("they cannot be read: %v", err)
	}

	for i, want := range []bool{true, false} {
		require.Equal(t, want, store.Put(imagepolicy.NewSet(nil, false, now)), i)
	}

	if _, err := store.Get(); err != nil || !store.Put(imagepolicy.NewSet(nil, true, now)) {
		t.Errorf("a change is not noticed: %v", err)
	}
	if store.Fail(failure) {
		t.Error("the keys that were read are not kept")
	}
	if set, err := store.Get(); err != nil || set == nil {
		t.Errorf("the keys that were read are not kept: %v", err)
	}
}
