package page

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
)

// started is the time of the first look at the tests' cluster.
var started = time.Now().UTC()

func ago(d time.Duration) string { return started.Add(-d).Format(time.RFC3339) }

type option func(object)

func scoped(namespace, kind string) string {
	if namespace == "" {
		return "Cluster" + kind
	}
	return kind
}

func named(version, kind, namespace, name string) object {
	meta := object{"name": name, "creationTimestamp": ago(12*24*time.Hour + 3*time.Hour)}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return object{"apiVersion": version, "kind": kind, "metadata": meta}
}

func digestOf(text string) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))
}

// pkg is an available package.
func pkg(namespace, name, version string, options ...option) object {
	o := named(engine, scoped(namespace, "Package"), namespace, name)
	metaOf(o)["generation"], metaOf(o)["finalizers"] = 1, []string{"package-operator.run/metrics"}
	image := "registry.example.com/" + name + ":v" + version
	o["spec"] = object{"image": image, "config": object{"password": "planted-value"}}
	status := object{
		"observedGeneration": 1, "revision": 3,
		"resolved": object{
			"packageName": name + ".example.com", "version": version, "image": image, "digest": digestOf(name + version),
			"images": []any{object{"name": "server", "image": "registry.example.com/" + name + "-server:" + version, "digest": digestOf(version + name)}},
		},
	}

	o["status"] = status
	phases(o, "namespace 1/1", "crds 2/2", "deploy 3/3", "publish 1/1")
	condition("Unpacked", "True", "UnpackSuccess", "")(o)
	condition("Progressing", "False", "Idle", "Everything was rolled out.")(o)
	condition("Available", "True", "Available", "Everything is available.")(o)
	condition("Ready", "True", "Ready", "Everything is as the spec asks for.")(o)
	for _, change := range options {
		change(o)
	}

	return o
}

func statusOf(o object) object { return o["status"].(object) }

// phases are texts such as "deploy 1/3". A phase is Ready, Probing, or Waiting if no object is
// ready.
func phases(o object, all ...string) {
	var list []any
	waiting := false
	for _, text := range all {
		var ready, total int
		name, counts, _ := strings.Cut(text, " ")
		_, _ = fmt.Sscanf(counts, "%d/%d", &ready, &total)
		state := "Ready"
		if ready < total {
			state = "Probing"
		}
		if waiting {
			state = "Waiting"
		}
		waiting = waiting || ready < total
		list = append(list, object{"name": name, "state": state, "ready": ready, "total": total})
	}

	statusOf(o)["phases"] = list
}

func condition(typ, status, reason, message string) option {
	return func(o object) {
		c := object{"type": typ, "status": status, "reason": reason, "message": message, "observedGeneration": 1, "lastTransitionTime": ago(7 * time.Minute)}
		all, _ := statusOf(o)["conditions"].([]any)
		for i := range all {
			if all[i].(object)["type"] == typ {
				all[i] = c
				return
			}
		}
		statusOf(o)["conditions"] = append(all, c)
	}
}

func blocking(phase, group, kind, name, message string) option {
	return func(o object) {
		all, _ := statusOf(o)["blocking"].([]any)
		statusOf(o)["blocking"] = append(all, object{
			"group": group, "kind": kind, "namespace": cmp.Or(fmt.Sprint(metaOf(o)["namespace"]), "default"), "name": name, "phase": phase, "message": message,
		})
	}
}

func dependsOn(name, namespace, to, wants string, satisfied bool) option {
	return func(o object) {
		c := object{"type": "Satisfied", "status": "True", "reason": "Satisfied", "message": "", "lastTransitionTime": ago(time.Hour)}
		if !satisfied {
			c["status"], c["reason"], c["message"] = "False", "NotAvailable", "package "+namespace+"/"+to+" is not available yet."
		}
		ref := object{"kind": scoped(namespace, "Package"), "name": to}
		if namespace != "" {
			ref["namespace"] = namespace
		}
		all, _ := statusOf(o)["dependencies"].([]any)
		statusOf(o)["dependencies"] = append(all, object{
			"name": name, "version": "1.4.0", "package": object{"name": to + ".example.com", "version": wants}, "packageRef": ref, "conditions": []any{c},
		})
	}
}

// rolling is a rollout in progress, broken an upgrade that is stuck.
func rolling(o object) {
	phases(o, "namespace 1/1", "crds 2/2", "deploy 1/3", "publish 0/1")
	blocking("deploy", "apps", "Deployment", metaOf(o)["name"].(string), "1 of 3 replicas are available")(o)
	condition("Progressing", "True", "RollingOut", "Phase deploy waits for 1 object.")(o)
	condition("Ready", "False", "Progressing", "Phase deploy waits for 1 object.")(o)
	statusOf(o)["revision"] = 4
}

func broken(o object) {
	name := metaOf(o)["name"].(string)
	phases(o, "namespace 1/1", "crds 2/2", "deploy 1/3", "publish 0/1")
	blocking("deploy", "apps", "Deployment", name, `condition "Available" == "True": the condition is False; 0 of 3 replicas are updated and available`)(o)
	condition("Progressing", "True", "RollingOut", "Phase deploy waits for 1 object.")(o)
	condition("Stalled", "True", "ProgressDeadlineExceeded", "Revision 8 has made no progress for 10 minutes: phase deploy waits for Deployment "+name+".")(o)
	condition("Ready", "False", "Stalled", "Phase deploy waits for 1 object.")(o)
	statusOf(o)["revision"] = 8
}

// revisions are the deployment of a package and its sets. The last set is the one in its status.
func revisions(p object, from int, versions ...string) []object {
	namespace, _ := metaOf(p)["namespace"].(string)
	name := metaOf(p)["name"].(string)
	owned := func(o object, kind, owner, uid string) object {
		metaOf(o)["ownerReferences"] = []any{object{"apiVersion": engine, "kind": scoped(namespace, kind), "name": owner, "uid": uid, "controller": true}}
		return o
	}
	metaOf(p)["uid"] = "uid-of-" + namespace + "-" + name
	deployment := owned(named(engine, scoped(namespace, "ObjectDeployment"), namespace, name), "Package", name, "uid-of-"+namespace+"-"+name)
	metaOf(deployment)["uid"] = "uid-of-deployment-" + name
	deployment["spec"] = object{"selector": object{}, "template": object{"spec": object{"phases": []any{}}}}
	deployment["status"] = object{}
	all := []object{p, deployment}
	for i, version := range versions {
		last := i == len(versions)-1
		set := owned(named(engine, scoped(namespace, "ObjectSet"), namespace, fmt.Sprintf("%s-%d", name, from+i)), "ObjectDeployment", name, "uid-of-deployment-"+name)
		cause := "Package source image changed."
		if i == 0 {
			cause = "Installing " + name + " package."
		}
		metaOf(set)["labels"] = object{
			"package-operator.run/object-deployment": name, "package-operator.run/package": name, "package-operator.run/version": version,
		}
		metaOf(set)["annotations"] = object{
			"package-operator.run/package-source-image": "registry.example.com/" + name + ":v" + version, "kubernetes.io/change-cause": cause,
		}
		metaOf(set)["creationTimestamp"] = ago(time.Duration(len(versions)-i)*31*time.Hour - 24*time.Hour)
		replicas := 2 + i
		set["spec"] = object{"revision": from + i, "phases": []any{
			object{"name": "namespace", "objects": []any{object{"object": object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": name, "namespace": namespace}}}}},
			object{"name": "deploy", "objects": []any{
				object{"object": object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "namespace": namespace}, "data": object{"level": "info", "version": version}}},
				object{"object": object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": name, "namespace": namespace}, "spec": object{
					"replicas": replicas, "selector": object{"matchLabels": object{"app": name}}, "template": object{"metadata": object{"labels": object{"app": name}}, "spec": object{
						"containers": []any{object{"name": name, "image": "registry.example.com/" + name + "-server:" + version}}}},
				}}},
				object{"object": object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": name, "namespace": namespace}, "spec": object{"selector": object{"app": name}}}},
			}},
		}}
		set["status"] = object{}
		if !last || statusOf(p)["revision"] == 3 {
			condition("Succeeded", "True", "RolloutSuccess", "")(set)
		}
		if i < len(versions)-2 {
			set["spec"].(object)["lifecycleState"] = "Archived"
		}
		all = append(all, set)
	}

	for _, kind := range []string{"ServiceAccount", "ConfigMap", "Service"} {
		o := named("v1", kind, namespace, name)
		metaOf(o)["labels"] = object{"package-operator.run/cache": "True"}
		all = append(all, o)
	}

	statusOf(p)["currentRevision"] = fmt.Sprintf("%s-%d", name, from+len(versions)-1)
	deployment["status"].(object)["currentRevision"] = statusOf(p)["currentRevision"]
	return all
}

// ready is a Deployment with some of its pods ready.
func ready(namespace, name string, replicas int) object {
	o := named("apps/v1", "Deployment", namespace, name)
	metaOf(o)["labels"] = object{"package-operator.run/cache": "True"}
	o["spec"] = object{"replicas": 3, "selector": object{"matchLabels": object{"app": name}}}
	o["status"] = object{"replicas": 3, "updatedReplicas": 3, "readyReplicas": replicas, "availableReplicas": replicas, "conditions": []any{
		object{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": "Deployment does not have minimum availability."},
		object{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated", "message": "ReplicaSet web-5f6d8 is progressing."}}}
	return o
}

// crashing is a Deployment whose pod keeps ending.
func crashing(namespace, name, message string) []object {
	labels := object{"app": name}
	deployment := named("apps/v1", "Deployment", namespace, name)
	metaOf(deployment)["uid"] = "uid-deployment-" + name
	deployment["spec"] = object{"replicas": 3, "selector": object{"matchLabels": labels}}
	deployment["status"] = object{"replicas": 3, "updatedReplicas": 1, "conditions": []any{object{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": "Deployment does not have minimum availability."}}}
	owned := func(o object, kind, owner string) {
		metaOf(o)["uid"], metaOf(o)["labels"] = "uid-"+o["kind"].(string)+"-"+name, labels
		metaOf(o)["ownerReferences"] = []any{object{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "uid-" + strings.ToLower(kind) + "-" + name, "controller": true}}
	}
	set := named("apps/v1", "ReplicaSet", namespace, name+"-7d9c5b6f4")
	owned(set, "Deployment", name)
	metaOf(set)["uid"] = "uid-replicaset-" + name
	set["spec"], set["status"] = object{"replicas": 1, "selector": object{"matchLabels": labels}}, object{"replicas": 1}
	pod := named("v1", "Pod", namespace, name+"-7d9c5b6f4-x2x8k")
	owned(pod, "ReplicaSet", name+"-7d9c5b6f4")
	metaOf(pod)["creationTimestamp"] = ago(20 * time.Minute)
	pod["spec"] = object{"containers": []any{object{"name": name, "image": "registry.example.com/" + name + "-server:8.0.0"}}}
	pod["status"] = object{
		"phase": "Running", "conditions": []any{object{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}},
		"containerStatuses": []any{object{
			"name": name, "restartCount": 7, "ready": false, "image": "i", "imageID": "",
			"state":     object{"waiting": object{"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}},
			"lastState": object{"terminated": object{"exitCode": 1, "reason": "Error", "message": message, "startedAt": ago(6 * time.Minute), "finishedAt": ago(5 * time.Minute)}},
		}},
	}

	return []object{deployment, set, pod}
}

// refused is a package with a Deployment whose pods cannot be created, according to an Event.
func refused(namespace, name, event string) []object {
	labels := object{"app": name}
	deployment := named("apps/v1", "Deployment", namespace, name)
	metaOf(deployment)["uid"], metaOf(deployment)["labels"] = "uid-deployment-"+name, object{"package-operator.run/cache": "True"}
	deployment["spec"] = object{"replicas": 1, "selector": object{"matchLabels": labels}}
	deployment["status"] = object{"conditions": []any{object{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": ""}}}
	set := named("apps/v1", "ReplicaSet", namespace, name+"-7d9c5b6f4")
	metaOf(set)["uid"], metaOf(set)["labels"] = "uid-replicaset-"+name, labels
	metaOf(set)["ownerReferences"] = []any{object{"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": "uid-deployment-" + name, "controller": true}}
	set["spec"], set["status"] = object{"replicas": 1, "selector": object{"matchLabels": labels}}, object{"replicas": 0}
	warning := named("v1", "Event", namespace, name+".1")
	warning["type"], warning["reason"], warning["message"], warning["count"], warning["lastTimestamp"] = "Warning", "FailedCreate", event, 9, ago(time.Minute)
	warning["involvedObject"] = object{"kind": "ReplicaSet", "namespace": namespace, "name": metaOf(set)["name"], "uid": "uid-replicaset-" + name}
	return append(revisions(pkg(namespace, name, "1.0.0", broken), 7, "0.9.0", "1.0.0"), deployment, set, warning)
}

// shop is a cluster with a little of everything.
func shop() (all []object) {
	for _, namespace := range []string{"default", "shop", "payments", "reports"} {
		all = append(all, named("v1", "Namespace", "", namespace))
	}

	lease := named("coordination.k8s.io/v1", "Lease", "package-operator-system", "8a4hp84a6s.package-operator-lock")
	lease["spec"] = object{"holderIdentity": "lockstep-manager-0", "leaseDurationSeconds": 15, "renewTime": started.Add(time.Hour).Format("2006-01-02T15:04:05.000000Z07:00")}
	all = append(all, lease)
	add := func(more ...object) { all = append(all, more...) }
	add(pkg("", "cert-operator", "1.15.2"))
	add(pkg("", "postgres-operator", "1.4.0"))
	add(pkg("", "observability", "3.2.1", dependsOn("certificates", "", "cert-operator", ">=1.14", true)))
	add(pkg("", "ingress", "2.0.0", dependsOn("certificates", "", "cert-operator", ">=1.10, <2", true)))
	add(revisions(pkg("shop", "web", "4.0.0", rolling, dependsOn("database", "shop", "orders-db", ">=5", true), dependsOn("ingress", "", "ingress", "^2", true)), 2, "3.8.0", "3.9.2", "4.0.0")...)
	add(pkg("shop", "orders-db", "5.1.0", dependsOn("operator", "", "postgres-operator", ">=1.3", true)))
	add(pkg("shop", "search", "0.9.4", condition("Paused", "True", "Paused", "Paused by its spec."), func(o object) {
		metaOf(o)["annotations"] = object{"package-operator.run/pause-message": "index is rebuilt until Friday"}
		o["spec"].(object)["paused"] = true
	}))
	add(revisions(pkg("payments", "api", "8.0.0", broken, dependsOn("database", "payments", "ledger-db", ">=5", true), dependsOn("ingress", "", "ingress", "^2", true)), 6, "7.4.0", "7.5.1", "8.0.0")...)
	add(ready("shop", "web", 1))
	add(crashing("payments", "api", "database migration 42 has not run")...)
	add(pkg("payments", "ledger-db", "5.1.0", dependsOn("operator", "", "postgres-operator", ">=1.3", true)))
	add(pkg("payments", "fraud", "1.0.3", condition("Unpacked", "False", "ImagePullBackOff", "registry.example.com/fraud:v1.0.3: MANIFEST_UNKNOWN: manifest unknown. Push the image, or correct spec.image."),
		condition("Ready", "False", "ImagePullBackOff", ""), func(o object) { delete(statusOf(o), "phases") }))

	add(pkg("reports", "nightly", "1.1.0", condition("DependenciesReady", "False", "WaitingForDependencies", "database: package reports/warehouse is not available yet."),
		condition("Ready", "False", "DependenciesNotReady", ""), dependsOn("database", "reports", "warehouse", ">=5", false), func(o object) { delete(statusOf(o), "phases") }))
	add(pkg("reports", "warehouse", "5.2.0", rolling, dependsOn("operator", "", "postgres-operator", ">=1.3", true)))
	return all
}

// many are packages. Every tenth is broken.
func many(n int) (all []object) {
	for i := range n {
		var options []option
		if i%10 == 0 {
			options = append(options, broken)
		}
		all = append(all, pkg(fmt.Sprintf("team-%03d", i%200), fmt.Sprintf("service-%05d", i), "1.2.3", options...))
	}
	return all
}
