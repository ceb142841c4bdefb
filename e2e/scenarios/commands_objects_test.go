package scenarios_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// objectCommands are for faults of single objects.
var objectCommands = commands{
	// apply FILE…, unapply FILE…: applies, or deletes, the objects in the files as the
	// administrator. ${NS} is replaced with the script's namespace.
	"apply": func(s *scenario, _ bool, args []string) {
		s.manifests(args, "apply", "--server-side", "--field-manager=user")
	},
	"unapply": func(s *scenario, _ bool, args []string) { s.manifests(args, "delete") },
	// until [--contains=TEXT] [!] kubectl ARGUMENTS: repeats the command until it succeeds
	// and its output contains the text; with "!" until it is refused with the text.
	"until": func(s *scenario, _ bool, args []string) {
		text, neg := "", false
		if len(args) > 0 {
			if t, ok := strings.CutPrefix(args[0], "--contains="); ok {
				text, args = t, args[1:]
			}
		}
		if len(args) > 0 && args[0] == "!" {
			neg, args = true, args[1:]
		}
		s.usage(len(args) > 1 && args[0] == "kubectl", "until [--contains=TEXT] [!] kubectl …")
		s.until(neg, text, args[1:])
	},
	// reports NAME TEXT: waits until a condition of the package, of its deployment or of
	// one of its sets contains the text, or a set's message about a blocking object.
	"reports": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) == 2, "reports NAME TEXT")
		s.eventually(patience, args[0]+" to report "+args[1], func(ctx context.Context) error { return s.reports(ctx, args[0], args[1]) })
	},
	// uid VAR KIND/NAME: keeps the UID of an object in a variable.
	"uid": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) == 2, "uid VAR KIND/NAME")
		obj := s.object(args[1])
		s.check(s.get(s.Context(), obj))
		s.ts.Setenv(args[0], string(obj.GetUID()))
	},
	// newest VAR: keeps the name of the newest ObjectSet of the script's namespace.
	"newest": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) == 1, "newest VAR")
		sets := &corev1alpha1.ObjectSetList{}
		s.check(s.cluster().Client.List(s.Context(), sets, client.InNamespace(s.namespace)))
		newest := slices.MaxFunc(sets.Items, func(a, b corev1alpha1.ObjectSet) int { return cmp.Compare(a.Spec.Revision, b.Spec.Revision) })
		s.ts.Setenv(args[0], newest.Name)
	},
	// same UID KIND/NAME: the object still has this UID, and is not being deleted. With
	// "!": waits until it was replaced.
	"same": func(s *scenario, neg bool, args []string) {
		s.usage(len(args) == 2, "same UID KIND/NAME")
		if neg {
			s.eventually(patience, args[1]+" to be recreated", func(ctx context.Context) error { return s.another(ctx, args[0], args[1]) })
			return
		}
		obj := s.object(args[1])
		s.check(s.get(s.Context(), obj))
		if string(obj.GetUID()) != args[0] || obj.GetDeletionTimestamp() != nil {
			s.Fatalf("%s is another one, or is being deleted: %s, deleted at %v", args[1], obj.GetUID(), obj.GetDeletionTimestamp())
		}
	},
	// few N KIND/NAME: the manager wrote the object N times at most since the mark.
	"few": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) == 2, "few N KIND/NAME")
		var most int
		_, err := fmt.Sscan(args[0], &most)
		s.check(err)
		if writes := s.writesOf(args[1]); len(writes) > most {
			for _, w := range writes {
				s.Logf("%s %s %s answered %d", w.Received.Format(time.StampMicro), w.Verb, w.RequestURI, w.Code)
			}
			s.Fatalf("the manager wrote %s %d times, and %d are too many", args[1], len(writes), most)
		}
	},
	// force KIND: takes the finalizers off all objects of the kind in the script's
	// namespace, and deletes them.
	"force": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) == 1, "force KIND")
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(s.object(args[0] + "/any").GroupVersionKind())
		s.check(s.env.Client.List(s.Context(), list, client.InNamespace(s.namespace)))
		for i := range list.Items {
			obj := &list.Items[i]
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			s.check(client.IgnoreNotFound(s.env.Client.Patch(s.Context(), obj, patch)))
			s.check(client.IgnoreNotFound(s.env.Client.Delete(s.Context(), obj)))
		}
	},
	// unwritten: the manager wrote no object of the script's packages since the mark.
	"unwritten": func(s *scenario, _ bool, _ []string) {
		writes, err := s.writesSince(s.Context(), s.mark)
		s.check(err)
		if len(writes) > 0 {
			s.Fatalf("the manager wrote %v", writes)
		}
	},
	// still DURATION: waits until the manager has sent no request for that time about the
	// script's namespace, or about objects named after it.
	"still": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) == 1, "still DURATION")
		d, err := time.ParseDuration(args[0])
		s.check(err)
		ctx, cancel := context.WithTimeoutCause(s.Context(), patience, fmt.Errorf("the manager does not come to rest within %s", patience))
		defer cancel()
		_, err = s.audit.Settled(ctx, s.position(), d, append(byManager, s.ofScript)...)
		s.check(err)
	},
	// collector: waits until the garbage collector knows the engine's kinds.
	"collector": func(s *scenario, _ bool, _ []string) { s.cluster().WaitCollector(s) },
	// clusterpackage create|upgrade NAME VERSION, clusterpackage delete NAME: as
	// package, for a ClusterPackage. check ignores it. Its name has to start with the
	// script's.
	"clusterpackage": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) >= 2 && strings.HasPrefix(args[1], s.namespace), "clusterpackage create|upgrade|delete NAME [VERSION]")
		s.clusterPackage(args[0], args[1], args[2:])
	},
}

// manifests runs kubectl on files of the script.
func (s *scenario) manifests(files []string, args ...string) {
	s.usage(len(files) > 0, args[0]+" FILE…")
	for _, file := range files {
		text, err := os.ReadFile(s.ts.MkAbs(file))
		s.check(err)
		path := filepath.Join(s.ts.MkAbs("."), ".expanded-"+filepath.Base(file))
		s.check(os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "${NS}", s.namespace)), 0o600))
		s.kubectl(false, append(slices.Clone(args), "--filename="+path))
	}
}

func (s *scenario) until(neg bool, text string, args []string) {
	what := "kubectl " + strings.Join(args, " ")
	s.eventually(patience, what, func(ctx context.Context) error {
		out, err := s.env.Kubectl(ctx, append([]string{"--namespace=" + s.namespace}, args...)...)
		switch {
		case neg && err == nil:
			return fmt.Errorf("it is not refused: %s", out)
		case neg:
			out = err.Error()
		case err != nil:
			return err
		}
		if !strings.Contains(out, text) {
			return fmt.Errorf("it says %s", out)
		}
		return nil
	})
}

// reports returns nil if a condition of a package or below it contains the text.
func (s *scenario) reports(ctx context.Context, name, text string) error {
	var all []string
	for _, namespace := range []string{s.namespace, ""} {
		scope := corev1alpha1.ScopeOf(namespace)
		for _, obj := range []corev1alpha1.Conditioned{scope.NewPackage(), scope.NewObjectDeployment()} {
			if err := s.cluster().Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, obj.(client.Object)); client.IgnoreNotFound(err) != nil {
				return err
			}
			all = append(all, messages(*obj.StatusConditions())...)
		}
		sets := scope.NewObjectSetList()
		if err := s.env.Client.List(ctx, sets.(client.ObjectList), client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, set := range sets.GenericObjectSets() {
			if set.GetLabels()[corev1alpha1.ObjectDeploymentLabel] == name {
				all = append(all, messages(*set.StatusConditions())...)
				for _, b := range set.ObjectSetStatus().Blocking {
					all = append(all, b.Message)
				}
			}
		}
	}
	if slices.ContainsFunc(all, func(message string) bool { return strings.Contains(message, text) }) {
		return nil
	}
	slices.Sort(all)
	return fmt.Errorf("it says:\n%s", strings.Join(slices.Compact(all), "\n"))
}

func messages(conditions []metav1.Condition) []string {
	var all []string
	for _, c := range conditions {
		all = append(all, c.Message)
	}
	return all
}

// another returns nil if the object exists with another UID.
func (s *scenario) another(ctx context.Context, uid, arg string) error {
	obj := s.object(arg)
	if err := s.get(ctx, obj); err != nil {
		return err
	}
	if string(obj.GetUID()) == uid || obj.GetDeletionTimestamp() != nil {
		return fmt.Errorf("it is the same, deleted at %v", obj.GetDeletionTimestamp())
	}
	return nil
}

// writesOf returns the manager's successful writes of one object since the mark.
func (s *scenario) writesOf(arg string) []sandbox.Entry {
	obj := s.object(arg)
	mapping, err := s.env.Client.RESTMapper().RESTMapping(obj.GroupVersionKind().GroupKind())
	s.check(err)
	entries, err := s.audit.Since(s.Context(), s.mark, sandbox.ByUser(harness.ManagerUser()), sandbox.Writes(), func(e sandbox.Entry) bool {
		return e.Code < 300 && e.Object.Resource == mapping.Resource.Resource && e.Object.Group == mapping.Resource.Group &&
			e.Object.Namespace == obj.GetNamespace() && e.Object.Name == obj.GetName() && e.Object.Subresource == ""
	})
	s.check(err)
	return entries
}

// ofScript reports whether a request is about the script's namespace, or about
// something named after it.
func (s *scenario) ofScript(e sandbox.Entry) bool {
	return strings.HasPrefix(e.Object.Namespace, s.namespace) || strings.HasPrefix(e.Object.Name, s.namespace)
}

func (s *scenario) clusterPackage(action, name string, rest []string) {
	if action == "delete" {
		s.check(s.cluster().Client.Delete(s.Context(), harness.ClusterPackage(name, "")))
		return
	}
	s.usage(len(rest) == 1, "clusterpackage "+action+" NAME VERSION")
	image := s.push(name, rest[0])
	switch action {
	case "create":
		s.cluster().Create(s, harness.ClusterPackage(name, image))
	case "upgrade":
		s.cluster().SetImage(s, "", name, image)
	default:
		s.Fatalf("unknown action %q", action)
	}
}

// rivalCommands are other controllers that want an object to be different.
var rivalCommands = commands{
	// rival start NAME KIND/NAME PATCH: from now on, each time that another client
	// changed the object, NAME sends the merge patch again, under its name as the
	// field manager; once at once. The patch "delete" deletes the object instead.
	// rival stop NAME: ends that, and prints how often it did so.
	"rival": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) == 4 && args[0] == "start" || len(args) == 2 && args[0] == "stop", "rival start NAME KIND/NAME PATCH | stop NAME")
		if args[0] == "start" {
			s.startRival(args[1], s.object(args[2]), args[3])
			return
		}
		r := s.rivals[args[1]]
		s.usage(r != nil, "the rival must have been started")
		r.stop()
		s.print(fmt.Sprintf("%d changes\n", <-r.changes))
	},
}

// rival is a running one.
type rival struct {
	stop    context.CancelFunc
	changes chan int
}

func (s *scenario) startRival(name string, obj *unstructured.Unstructured, patch string) {
	watcher, err := client.NewWithWatch(s.cluster().Config(), client.Options{})
	s.check(err)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(obj.GroupVersionKind())
	w, err := watcher.Watch(s.Context(), list, client.InNamespace(obj.GetNamespace()), client.MatchingFields{"metadata.name": obj.GetName()})
	s.check(err)
	ctx, stop := context.WithCancel(s.Context())
	r := &rival{stop: stop, changes: make(chan int, 1)}
	s.rivals[name] = r
	s.ts.Defer(stop)
	go func() {
		n, mine := 0, ""
		defer func() { w.Stop(); r.changes <- n }()
		for {
			select {
			case <-ctx.Done():
				return
			case event, open := <-w.ResultChan():
				live, ok := event.Object.(*unstructured.Unstructured)
				if !open {
					return
				}
				if !ok || event.Type == "DELETED" || live.GetDeletionTimestamp() != nil || live.GetResourceVersion() == mine {
					continue
				}
				if version, err := change(ctx, watcher, live, patch, name); err == nil {
					n, mine = n+1, version
				}
			}
		}
	}()
}

// change sends a patch, or deletes the object, and returns the version that it
// has then.
func change(ctx context.Context, c client.Client, obj *unstructured.Unstructured, patch, manager string) (string, error) {
	if patch == "delete" {
		return "", c.Delete(ctx, obj)
	}
	err := c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager))
	return obj.GetResourceVersion(), err
}
