package sources

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/objects"
)

// reviewer has rights in the form "USER may get NAMESPACE/SECRET", separated by commas.
type reviewer string

func (r reviewer) review(_ context.Context, review *authorizationv1.SubjectAccessReview) error {
	spec := review.Spec
	at := spec.ResourceAttributes
	groups := strings.Join(spec.Groups, ",")
	namespace, _, _ := strings.Cut(strings.TrimPrefix(spec.User, "system:serviceaccount:"), ":")
	if at.Group != "" || at.Resource != "secrets" || groups != "system:serviceaccounts,system:serviceaccounts:"+namespace+",system:authenticated" {
		return errors.New("wrong question")
	}
	for right := range strings.SplitSeq(string(r), ",") {
		review.Status.Allowed = review.Status.Allowed || right == spec.User+" may "+at.Verb+" "+at.Namespace+"/"+at.Name
	}
	return nil
}

// there is a Get for which every account exists.
func there(context.Context, Ref) (*Object, error) { return &Object{}, nil }

// Rights that are bound to the name of a deleted account have no effect.
func TestGuardOfDeletedAccounts(t *testing.T) {
	t.Parallel()
	app, db := objects.Account{Namespace: "team", Name: "app"}, Ref{Kind: KindSecret, Namespace: "team", Name: "db"}
	for reason, tc := range map[string]struct {
		account *Object
		err     error
		want    error
	}{
		"it exists":               {account: &Object{}},
		"it was deleted":          {want: &ForbiddenError{app, db}},
		"whether it is not known": {err: context.DeadlineExceeded, want: context.DeadlineExceeded},
	} {
		g := NewGuard(reviewer("system:serviceaccount:team:app may get team/db").review, func(_ context.Context, ref Ref) (*Object, error) {
			if ref != (Ref{Kind: KindServiceAccount, Namespace: "team", Name: "app"}) {
				return nil, errors.New("another object")
			}
			return tc.account, tc.err
		})
		if err := g.Check(t.Context(), app, db); !errors.Is(err, tc.want) && (err == nil || tc.want == nil || err.Error() != tc.want.Error()) {
			t.Errorf("%s: %v, want %v", reason, err, tc.want)
		}
	}
}

// Answers are kept per account and Secret. Permissions are kept longer than refusals, and errors
// are not kept.
func TestGuard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app, other := objects.Account{Namespace: "team", Name: "app"}, objects.Account{Namespace: "team", Name: "other"}
		db, key := Ref{Kind: KindSecret, Namespace: "team", Name: "db"}, Ref{Kind: KindSecret, Namespace: "team", Name: "key"}
		rights, asked, fails := reviewer("system:serviceaccount:team:app may get team/db"), 0, error(nil)
		g := NewGuard(func(ctx context.Context, review *authorizationv1.SubjectAccessReview) error {
			asked++
			return errors.Join(fails, rights.review(ctx, review))
		}, there)
		check := func(account objects.Account, ref Ref, allowed bool, questions int) {
			t.Helper()
			before := asked
			err := g.Check(t.Context(), account, ref)
			var forbidden *ForbiddenError
			if allowed != (err == nil) || !allowed && !errors.As(err, &forbidden) || asked != before+questions {
				t.Errorf("%s and %s: %v, %d questions", account, ref, err, asked-before)
			}
		}
		check(objects.Account{}, key, true, 0)
		check(app, Ref{Kind: KindConfigMap, Namespace: "team", Name: "db"}, true, 0)
		check(app, db, true, 1)
		check(app, db, true, 0)
		check(app, key, false, 1)
		check(app, key, false, 0)
		check(other, db, false, 1)
		rights = "system:serviceaccount:team:app may get team/key"
		time.Sleep(secretRefusalKept + 1)
		check(app, key, true, 1)
		check(app, db, true, 0)
		time.Sleep(secretAnswerKept)
		check(app, db, false, 1)
		fails = apierrors.NewForbidden(schema.GroupResource{Resource: "subjectaccessreviews"}, "", errors.New("no right"))
		time.Sleep(secretAnswerKept)
		if err := g.Check(t.Context(), app, db); err == nil || errors.As(err, new(*ForbiddenError)) {
			t.Errorf("a question that was not answered: %v", err)
		}
		fails = nil
		check(app, db, false, 1)
		err := g.Check(t.Context(), app, db)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "kubectl auth can-i get secret/db -n team --as=system:serviceaccount:team:app") {
			t.Errorf("%v", err)
		}
	})
}

// A Secret is not read for a Package whose account is not allowed to get it.
func TestReadForAccounts(t *testing.T) {
	t.Parallel()
	read := 0
	get := func(_ context.Context, ref Ref) (*Object, error) {
		read++
		return &Object{Data: map[string][]byte{"config": []byte("a: " + ref.Name)}}, nil
	}
	g := NewGuard(reviewer("system:serviceaccount:team:app may get team/mine").review, there)
	app := objects.Account{Namespace: "team", Name: "app"}
	from := func(name string) *corev1alpha1.PackageSpec {
		return &corev1alpha1.PackageSpec{ConfigFrom: []corev1alpha1.ValueSource{
			{SecretKeyRef: &corev1alpha1.SecretKeyReference{Name: name, Key: "config", Optional: true}},
		}}
	}

	if values, err := Read(t.Context(), g.For(app, get), from("mine"), "team"); err != nil || string(values.Config) != `{"a":"mine"}` || read != 1 {
		t.Errorf("%+v, %v", values, err)
	}
	if _, err := Read(t.Context(), g.For(app, get), from("db-admin"), "team"); !errors.As(err, new(*ForbiddenError)) || read != 1 {
		t.Errorf("%v, %d reads", err, read)
	}
	if _, err := Read(t.Context(), g.For(objects.Account{}, get), from("db-admin"), "team"); err != nil || read != 2 {
		t.Errorf("%v, %d reads", err, read)
	}
}

// Tokens of the cluster and Secrets of other programs are never read, regardless of rights.
func TestTypesThatAreNeverRead(t *testing.T) {
	t.Parallel()
	for secretType, want := range map[string]bool{
		"kubernetes.io/service-account-token": true, "bootstrap.kubernetes.io/token": true, "helm.sh/release.v1": true,
		"package-operator.run/slice": true, "package-operator.run/hash-key": true, "Opaque": false, "": false, "kubernetes.io/basic-auth": false,
	} {
		object := objectOf(Ref{Kind: KindSecret}, map[string]any{"type": secretType, "data": map[string]any{"token": "YTogZ2VoZWlt"}})
		if (object.Refused != "") != want || want == (object.Data["token"] != nil) {
			t.Errorf("%s: %+v", secretType, object)
		}
		get := func(context.Context, Ref) (*Object, error) { return object, nil }
		_, err := Read(t.Context(), get, &corev1alpha1.PackageSpec{ConfigFrom: []corev1alpha1.ValueSource{
			{SecretKeyRef: &corev1alpha1.SecretKeyReference{Name: "x", Key: "token", Optional: true}},
		}}, "team")
		var wrong violation.Violations
		if errors.As(err, &wrong) != want || want && (!strings.Contains(err.Error(), "spec.configFrom[0]") || !strings.Contains(err.Error(), secretType)) {
			t.Errorf("%s: %v", secretType, err)
		}
	}
}
