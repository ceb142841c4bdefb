package plan_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

const (
	chains, deepChains = 6, 25
	upgrades           = 8 // of each chain
)

// An upgrade makes exactly the planned changes. For 48 random upgrades of small packages, or 200,
// the objects before and after and the audit log agree with the plan. They include foreign changes,
// conflicting objects, immutable fields, and upgrades after a blocked one.
func TestUpgradesFollowTheirPlans(t *testing.T) {
	env := shared(t)
	seed := uint64(2) // draws every action in the first chains
	if text := os.Getenv("LOCKSTEP_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	g := newGeneration(t, env)
	var wg sync.WaitGroup
	count := chains
	if harness.Deep() {
		count = deepChains
	}
	all := make([]*chain, count)
	only := os.Getenv("LOCKSTEP_CHAIN")
	for i := range all {
		if only != "" && only != strconv.Itoa(i) {
			continue
		}
		all[i] = &chain{
			generation: g, namespace: fmt.Sprintf("drawn-%02d", i),
			random: rand.New(rand.NewPCG(seed, uint64(i))), // drawn, not secret
		}
		wg.Go(func() {
			suite := harness.NewSuite()
			ok := suite.Do(func() { all[i].run(suite) })
			suite.End(0)
			all[i].failed = !ok
		})
	}
	wg.Wait()
	all = slices.DeleteFunc(all, func(c *chain) bool { return c == nil })
	counts := map[dryrun.Action]int{}
	outcomes := map[dryrun.Outcome]int{}
	writes := g.writes(t)
	for _, c := range all {
		if c.failed {
			t.Errorf("%s failed; LOCKSTEP_SEED=%d repeats it", c.namespace, seed)
			continue
		}
		for i, u := range c.upgrades {
			outcomes[u.plan.Outcome]++
			for _, change := range u.changes() {
				counts[change.Action]++
			}
			if err := u.audited(writes[c.namespace], c.until(i)); err != nil {
				t.Errorf("%s, upgrade %d: %v", c.namespace, i, err)
			}
		}
	}
	t.Logf("outcomes %v, changes %v", outcomes, counts)
	for _, action := range []dryrun.Action{
		dryrun.ActionCreate, dryrun.ActionChange, dryrun.ActionCorrect, dryrun.ActionTakeOver,
		dryrun.ActionRelabel, dryrun.ActionReplace, dryrun.ActionDelete, dryrun.ActionRelease, dryrun.ActionRefuse,
	} {
		if counts[action] == 0 && only == "" {
			t.Errorf("no %s was drawn: the test proves less than it claims", action)
		}
	}
}

// generation has the state that all chains share.
type generation struct {
	env     *harness.Env
	cluster *dryrun.Cluster
	version string
	started time.Time
}

func newGeneration(t *testing.T, env *harness.Env) *generation {
	t.Helper()
	g := &generation{env: env, started: time.Now()}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gauges.generated.example.com"}}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "generated.example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Gauge", Plural: "gauges"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": gaugeSchema()},
			}},
		}},
	}
	env.Create(t, crd)
	kubernetes, err := discovery.NewDiscoveryClientForConfig(env.Config())
	require.NoError(t, err)
	harness.Eventually(t, harness.Patience, "the definition to be served", func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "generated.example.com", Version: "v1", Kind: "GaugeList"})
		if err := env.Client.List(ctx, list); err != nil {
			return err
		}
		_, err := kubernetes.ServerResourcesForGroupVersion("generated.example.com/v1")
		return err
	})
	info, err := kubernetes.ServerVersion()
	require.NoError(t, err)
	g.version = info.GitVersion
	if g.cluster, err = dryrun.Connect(rest.CopyConfig(env.Config()), env.Client); err != nil {
		t.Fatal(err)
	}
	return g
}

func gaugeSchema() apiextensionsv1.JSONSchemaProps {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"size":  {Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("7")}},
		"marks": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text}},
		"parts": {
			Type: "array", XListType: ptr.To("map"), XListMapKeys: []string{"name"},
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Required: []string{"name"},
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": text, "size": {Type: "integer"}},
			}},
		},
	}}
}

// chain is one package through its upgrades.
type chain struct {
	*generation
	namespace string
	random    *rand.Rand
	draft     *draft
	upgrades  []*upgrade
	failed    bool
}

// upgrade is one of them with its plan.
type upgrade struct {
	plan          *dryrun.Plan
	begun         time.Time
	before, after map[objects.Key]*unstructured.Unstructured
	scenario      string
}

func (c *chain) run(tb testing.TB) {
	c.env.Namespace(tb, c.namespace)
	c.draft = newDraft(c.random)
	c.env.Create(tb, harness.Package(c.namespace, "drawn", c.push(tb, 0, c.draft)))
	c.env.WaitAvailable(tb, c.namespace, "drawn")
	for i := range upgrades {
		next := c.draft.clone()
		next.mutate(c.random)
		u := &upgrade{scenario: c.disturb(tb, next)}
		image := c.push(tb, i+1, next)
		u.plan = c.foresee(tb, next, image)
		u.before = c.snapshot(tb)
		u.begun = time.Now()
		c.upgrades = append(c.upgrades, u)
		c.set(tb, func(spec *corev1alpha1.PackageSpec) { spec.Image, spec.Paused = image, false })
		c.await(tb, i, u)
		if u.plan.Outcome != dryrun.OutcomeRefused {
			c.draft = next
		}
	}
}

func (c *chain) push(tb testing.TB, i int, d *draft) string {
	return c.env.Push(tb, fmt.Sprintf("%s:v%d", c.namespace, i), d.files(tb))
}

func (c *chain) foresee(tb testing.TB, d *draft, image string) *dryrun.Plan {
	pkg, err := loader.Load(tb.Context(), d.files(tb).Bytes(), loader.Options{
		Package: manifestsv1alpha1.TemplateContextPackage{
			Metadata: manifestsv1alpha1.TemplateContextObjectMeta{Name: "drawn", Namespace: c.namespace}, Image: image,
		},
		Environment: &manifestsv1alpha1.PackageEnvironment{Kubernetes: manifestsv1alpha1.PackageEnvironmentKubernetes{Version: c.version}},
	})
	if err != nil {
		tb.Fatalf("%s: %v", c.namespace, err)
	}
	plan, err := dryrun.Make(tb.Context(), c.cluster, dryrun.Request{
		Scope: corev1alpha1.ScopeNamespaced, Namespace: c.namespace, Name: "drawn", Template: pkg.Template(), Labels: pkg.Labels,
	})
	if err != nil {
		tb.Fatalf("%s: %v", c.namespace, err)
	}
	return plan
}

func (c *chain) set(tb testing.TB, change func(*corev1alpha1.PackageSpec)) {
	pkg := c.env.Package(tb, c.namespace, "drawn")
	before := pkg.DeepCopyObject().(client.Object)
	change(pkg.PackageSpec())
	require.NoError(tb, c.env.Client.Patch(tb.Context(), pkg.(client.Object), client.MergeFrom(before)))
}

// snapshot reads all objects of the namespace that packages are drawn from.
func (c *chain) snapshot(tb testing.TB) map[objects.Key]*unstructured.Unstructured {
	found := map[objects.Key]*unstructured.Unstructured{}
	for kind, gv := range versions {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gv.WithKind(kind + "List"))
		require.NoError(tb, c.env.Client.List(tb.Context(), list, client.InNamespace(c.namespace)))
		for i := range list.Items {
			u := &list.Items[i]
			if strings.HasPrefix(u.GetName(), "object-") {
				u.SetGroupVersionKind(gv.WithKind(kind))
				found[objects.Key{Group: gv.Group, Kind: kind, Namespace: c.namespace, Name: u.GetName()}] = u
			}
		}
	}
	return found
}

// await waits until the upgrade has progressed as far as it can, and did as planned.
func (c *chain) await(tb testing.TB, i int, u *upgrade) {
	what := fmt.Sprintf("upgrade %d of %s (before it: %s) to follow its plan", i, c.namespace, u.scenario)
	var last error
	// Many wait at the same time: more questions would only slow the answers down.
	err := wait.PollUntilContextTimeout(tb.Context(), 200*time.Millisecond, harness.Patience, true, func(ctx context.Context) (bool, error) {
		if last = c.ended(ctx, u.plan); last != nil {
			return false, nil
		}
		u.after = c.snapshot(tb)
		last = u.follows()
		return last == nil, nil
	})
	if err != nil {
		tb.Fatalf("waited for %s: %v\nrefusals %+v\nthe package reports %s", what, last, u.plan.Refusals, c.statuses(tb))
	}
}

// statuses is how the upgrades so far ended, and how the package stands.
func (c *chain) statuses(tb testing.TB) string {
	var b strings.Builder
	for i, u := range c.upgrades {
		fmt.Fprintf(&b, "\n%d: %s, %s, before it: %s", i, u.plan.Outcome, u.plan.Summary, u.scenario)
	}
	fmt.Fprintf(&b, "\n%+v", *c.env.Package(tb, c.namespace, "drawn").PackageStatus())
	return b.String()
}

// ended reports whether nothing more happens.
func (c *chain) ended(ctx context.Context, p *dryrun.Plan) error {
	pkg := &corev1alpha1.Package{}
	if err := c.env.Client.Get(ctx, types.NamespacedName{Namespace: c.namespace, Name: "drawn"}, pkg); err != nil {
		return err
	}
	refused := p.Outcome == dryrun.OutcomeRefused
	switch {
	case pkg.Status.ObservedGeneration != pkg.Generation || pkg.Status.Revision != p.Revision:
		return fmt.Errorf("the status is of generation %d and revision %d, the plan of revision %d", pkg.Status.ObservedGeneration, pkg.Status.Revision, p.Revision)
	case refused && len(pkg.Status.Blocking) == 0:
		return errors.New("nothing blocks it")
	case refused:
		return nil
	}
	sets := &corev1alpha1.ObjectSetList{}
	if err := c.env.Client.List(ctx, sets, client.InNamespace(c.namespace)); err != nil {
		return err
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		if newest := set.Spec.Revision == p.Revision; newest == (set.Spec.LifecycleState == corev1alpha1.ObjectSetLifecycleStateArchived) {
			return fmt.Errorf("revision %d is %s; the package reports %+v", set.Spec.Revision, set.Spec.LifecycleState, pkg.Status)
		}
	}
	return nil
}

// until returns the earliest time of the next upgrade's disturbances.
func (c *chain) until(i int) time.Time {
	if i+1 < len(c.upgrades) {
		return c.upgrades[i+1].begun
	}
	return time.Now()
}
