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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/kube/quota"
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

func whole(name, version string, size int) metav1.Object {
	o := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"text": strings.Repeat("x", size)}}}
	o.SetName(name)
	o.SetUID(types.UID(name))
	o.SetResourceVersion(version)
	return o
}

// The content of sources is bounded. A source is not watched while there is no memory for it.
func TestContentIsCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const mebibyte = 1 << 20
		s := newStage()
		w := NewWatches(s.listen, nil)
		w.Enqueue, w.Whole, w.Memory = func(types.NamespacedName) {}, true, quota.New(16*mebibyte)
		w.Mapping = func(schema.GroupKind, string) (*meta.RESTMapping, error) {
			return &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}, nil
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = w.Start(ctx) }()
		synctest.Wait()
		user := types.NamespacedName{Namespace: "team", Name: "t"}
		a, b := Ref{Kind: KindConfigMap, Namespace: "team", Name: "a"}, Ref{Kind: KindConfigMap, Namespace: "team", Name: "b"}
		w.Use(user, []Ref{a, b})
		synctest.Wait()
		s.of("configmaps team/a").Listed([]metav1.Object{whole("a", "1", mebibyte)})
		s.of("configmaps team/b").Listed([]metav1.Object{whole("b", "1", mebibyte)})
		synctest.Wait()
		if !w.State(a).Known || w.State(b).Known || len(s.ended) != 1 {
			t.Fatalf("a is known: %t, b: %t, %d watches have ended", w.State(a).Known, w.State(b).Known, len(s.ended))
		}
		var exceeded *quota.Exceeded
		if err := w.State(b).Err; !errors.As(err, &exceeded) || !strings.Contains(err.Error(), "the source ConfigMap team/b would take 3 MiB") {
			t.Errorf("b: %v", err)
		}
		s.of("configmaps team/b").Changed(whole("b", "2", 1)) // an event of the watch that has ended
		begun := len(s.begun)
		w.Use(user, []Ref{a, b})
		synctest.Wait()
		if len(s.begun) != begun || w.State(b).Known {
			t.Error("it is watched again, and there is no memory")
		}
		s.of("configmaps team/a").Changed(whole("a", "2", 1))
		w.Use(user, []Ref{a, b})
		synctest.Wait()
		s.of("configmaps team/b").Listed([]metav1.Object{whole("b", "1", mebibyte)})
		if !w.State(b).Known || w.State(b).Err != nil {
			t.Errorf("with memory: %+v", w.State(b).Err)
		}
		w.Use(user, nil)
		for _, ref := range []Ref{a, b} {
			if !w.Memory.Fits(ref.memory(), 3*mebibyte) {
				t.Errorf("%s still counts", ref)
			}
		}
		synctest.Wait()
	})
}

// Whole objects are listed a few at a time. An API that does not answer delays the others only
// briefly.
func TestWholeObjectsBeginInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := map[string]livestate.Listener{}
		w := NewWatches(func(ctx context.Context, sel livestate.Selection, l livestate.Listener) {
			begun[sel.Namespace+"/"+sel.Name] = l
			<-ctx.Done()
		}, nil)
		w.Enqueue, w.Whole = func(types.NamespacedName) {}, true
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = w.Start(ctx) }()
		synctest.Wait()
		var many []Ref
		for _, name := range strings.Split("abcdefghij", "") {
			many = append(many, Ref{Kind: KindConfigMap, Namespace: "many", Name: name})
		}
		w.Use(types.NamespacedName{Namespace: "many", Name: "t"}, many)
		synctest.Wait()
		w.Use(types.NamespacedName{Namespace: "few", Name: "t"}, []Ref{{Kind: KindConfigMap, Namespace: "few", Name: "a"}})
		synctest.Wait()
		if len(begun) != sourcesStarting {
			t.Errorf("%d start at a time", len(begun))
		}
		for range 2 {
			for _, l := range begun {
				l.Listed(nil)
			}
			synctest.Wait()
		}
		if begun["few/a"] == nil {
			t.Error("the other namespace has no turn")
		}
	})
}
