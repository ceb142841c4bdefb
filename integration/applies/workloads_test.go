package applies_test

import "strings"

// podDimensions returns the dimensions of a pod template. $P is the path of its spec, $C the path
// of its container.
func podDimensions(pod string) []dimension {
	all := []dimension{
		dim("env", "",
			"$C/env/[name=A] = {value: x}",
			"$C/env/[name=A] = {valueFrom: {secretKeyRef: {name: s, key: k}}}",
			"$C/env/[name=A] = {valueFrom: {configMapKeyRef: {name: c, key: k, optional: true}}}",
			"$C/env/[name=A] = {valueFrom: {fieldRef: {fieldPath: metadata.name}}}",
			"$C/env/[name=A] = {valueFrom: {resourceFieldRef: {resource: limits.cpu}}}",
		),
		dim("env list", "", "$C/env/[name=B] = {value: b}", "$C/env/[name=B] = {value: c}\n$C/env/[name=D] = {value: d}"),
		dim("env from", "", "$C/envFrom = [{configMapRef: {name: c}}]", "$C/envFrom = [{secretRef: {name: c}}]", "$C/envFrom = [{prefix: P, configMapRef: {name: c}}, {secretRef: {name: s}}]"),
		dim("liveness", append([]string{""}, handlers("livenessProbe")...)...),
		dim("readiness", append([]string{""}, handlers("readinessProbe")...)...),
		dim("startup", append([]string{""}, handlers("startupProbe")...)...),
		hand("probe period", "$C/livenessProbe/periodSeconds = 23"),
		dim("pre-stop", append([]string{""}, hooks("preStop")...)...),
		dim("post-start", append([]string{""}, hooks("postStart")...)...),
		dim("ports", "", "$C/ports = [{name: web, containerPort: 8080}]", "$C/ports = [{name: web, containerPort: 9090}]",
			"$C/ports = [{name: web, containerPort: 8080}, {name: metrics, containerPort: 9090}]", "$C/ports = [{name: dns, containerPort: 8080, protocol: UDP}]",
			"$C/ports = [{containerPort: 8080}]"),
		dim("resources", "",
			"$C/resources = {requests: {cpu: 100m}, limits: {cpu: 200m}}",
			"$C/resources = {requests: {cpu: 500m}}",
			"$C/resources = {limits: {cpu: 1, memory: 1Gi}}",
			"$C/resources = {requests: {memory: 64Mi}}"),
		dim("security", "", "$C/securityContext = {runAsUser: 1000}", "$C/securityContext = {}", "$C/securityContext = {capabilities: {drop: [ALL]}, readOnlyRootFilesystem: true}"),
		hand("foreign security", "$C/securityContext/runAsGroup = 7"),
		dim("image", "", "$C/image = registry.example/app:v2", "$C/image = registry.example/app:v3\n$C/imagePullPolicy = Always"),
		dim("command", "", "$C/command = [run]\n$C/args = [a, b]", "$C/args = [b, a]", "$C/command = [run, fast]"),
		dim("volume", append([]string{""}, volumes()...)...),
		dim("volumes", "", "$P/volumes/[name=w] = {emptyDir: {}}", "$P/volumes/[name=w] = {configMap: {name: w, items: [{key: a, path: b}]}}\n$C/volumeMounts/[mountPath=/w] = {name: w, readOnly: true}"),
		dim("account", "", "$P/serviceAccountName = builder", "$P/serviceAccountName = other"),
		dim("pod security", "", "$P/securityContext = {runAsNonRoot: true, runAsUser: 1}", "$P/securityContext = {fsGroup: 2}", "$P/securityContext = {}"),
		dim("seccomp", "", "$P/securityContext/seccompProfile = {type: RuntimeDefault}", "$P/securityContext/seccompProfile = {type: Localhost, localhostProfile: p.json}"),
		dim("affinity", "",
			"$P/affinity = {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}",
			"$P/affinity = {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {a: b}}}}]}}",
			"$P/affinity = {}"),
		dim("tolerations", "", "$P/tolerations = [{key: a, operator: Exists}]", "$P/tolerations = [{key: a, operator: Equal, value: v, effect: NoSchedule}, {operator: Exists}]"),
		dim("selector of nodes", "", "$P/nodeSelector = {disk: ssd}", "$P/nodeSelector = {disk: hdd, zone: a}"),
		dim("spread", "", "$P/topologySpreadConstraints = [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {a: b}}}]",
			"$P/topologySpreadConstraints = [{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {a: b}}}]"),
		dim("dns", "", "$P/dnsPolicy = None\n$P/dnsConfig = {nameservers: [192.0.2.1]}", "$P/dnsPolicy = Default", "$P/dnsConfig = {options: [{name: ndots, value: \"2\"}]}"),
		dim("host", "", "$P/hostNetwork = true", "$P/hostPID = true", "$P/shareProcessNamespace = true", "$P/hostUsers = false"),
		dim("grace", "", "$P/terminationGracePeriodSeconds = 5"),
		dim("pull secrets", "", "$P/imagePullSecrets = [{name: a}]", "$P/imagePullSecrets = [{name: b}, {name: a}]"),
		dim("aliases", "", "$P/hostAliases = [{ip: 192.0.2.1, hostnames: [a]}]", "$P/hostAliases = [{ip: 192.0.2.1, hostnames: [b]}, {ip: 192.0.2.2, hostnames: [c]}]"),
		dim("second container", "", "$P/containers/[name=second] = {image: s}", "$P/containers/[name=second] = {image: t, env: [{name: A, value: a}]}", "$P/containers/[name=third] = {image: s}"),
		dim("init container", "", "$P/initContainers/[name=init] = {image: i}", "$P/initContainers/[name=init] = {image: i, restartPolicy: Always}", "$P/initContainers/[name=other] = {image: i}"),
		dim("scheduler", "", "$P/schedulerName = mine", "$P/priorityClassName = system-node-critical"),
		dim("links", "", "$P/enableServiceLinks = false", "$P/setHostnameAsFQDN = true"),
		hand("foreign sidecar", "$P/containers/[name=sidecar] = {image: proxy}"),
		hand("foreign env", "$C/env/[name=HTTP_PROXY] = {value: proxy}", "$C/env/[name=B] = {valueFrom: {fieldRef: {fieldPath: metadata.name}}}"),
		hand("foreign toleration", "$P/tolerations = [{key: theirs, operator: Exists}]"),
		hand("foreign volume", "$P/volumes/[name=theirs] = {emptyDir: {}}\n$C/volumeMounts/[mountPath=/theirs] = {name: theirs}"),
	}
	return inPod(pod, all)
}

func inPod(pod string, all []dimension) []dimension {
	for i := range all {
		for j, alternative := range all[i].alternatives {
			alternative = strings.ReplaceAll(alternative, "$C", "$P/containers/[name=main]")
			all[i].alternatives[j] = strings.ReplaceAll(alternative, "$P", pod)
		}
	}
	return all
}

func handlers(probe string) []string {
	return []string{
		"$C/" + probe + " = {httpGet: {path: /healthz, port: 8080}}",
		"$C/" + probe + " = {tcpSocket: {port: 8080}}",
		"$C/" + probe + " = {exec: {command: [check]}}",
		"$C/" + probe + " = {grpc: {port: 8080}, timeoutSeconds: 3}",
		"$C/" + probe + " = {httpGet: {path: /livez, port: web, scheme: HTTPS}, initialDelaySeconds: 9}",
	}
}

func hooks(hook string) []string {
	return []string{
		"$C/lifecycle/" + hook + " = {exec: {command: [stop]}}",
		"$C/lifecycle/" + hook + " = {httpGet: {path: /stop, port: 8080}}",
		"$C/lifecycle/" + hook + " = {sleep: {seconds: 3}}",
	}
}

// volumes are the sources of a volume.
func volumes() []string {
	var all []string
	for _, source := range []string{
		"emptyDir: {}",
		"emptyDir: {medium: Memory, sizeLimit: 1Gi}",
		"configMap: {name: c}",
		"configMap: {name: c, optional: true, defaultMode: 256, items: [{key: a, path: b}]}",
		"secret: {secretName: s}",
		"hostPath: {path: /data}",
		"hostPath: {path: /data, type: Directory}",
		"persistentVolumeClaim: {claimName: p}",
		"projected: {sources: [{configMap: {name: c}}, {secret: {name: s}}]}",
		"projected: {sources: [{serviceAccountToken: {path: token}}, {downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}]}",
		"downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}",
		"nfs: {server: s, path: /p}",
		"csi: {driver: d.example.com}",
		"ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}",
		"iscsi: {targetPortal: \"192.0.2.1\", iqn: iqn.2001-04.com.example, lun: 0}",
		"fc: {targetWWNs: [a], lun: 1}",
		"image: {reference: r}",
	} {
		all = append(all, "$P/volumes/[name=v] = {"+source+"}\n$C/volumeMounts/[mountPath=/v] = {name: v}")
	}
	return all
}

const podTemplate = `
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers: [{name: main, image: registry.example/app:v1}]`

func workloads() []*kind {
	selector := "\n  selector: {matchLabels: {app: NAME}}"
	workload := func(name, apiVersion, spec string, own ...dimension) *kind {
		return &kind{
			name: name, base: "apiVersion: " + apiVersion + "\nkind: " + name + "\nmetadata: {name: NAME}\nspec:" + spec,
			dimensions: append(own, podDimensions("spec/template/spec")...),
		}
	}
	replicas := dim("replicas", "", "spec/replicas = 2", "spec/replicas = 5", "spec/replicas = 0")
	labels := dim("pod labels", "", "spec/template/metadata/labels/tier = a", "spec/template/metadata/annotations/checksum = b")
	budget := "maxSurge: 1, maxUnavailable: 0"
	all := []*kind{
		workload("Deployment", "apps/v1", selector+podTemplate, replicas, labels,
			dim("strategy", "", "spec/strategy = {type: Recreate}", "spec/strategy = {type: RollingUpdate}", "spec/strategy = {rollingUpdate: {"+budget+"}}",
				"spec/strategy = {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}", "spec/strategy = {type: Recreate, rollingUpdate: null}", "spec/strategy = {}"),
			dim("pace", "", "spec/minReadySeconds = 5", "spec/revisionHistoryLimit = 2", "spec/progressDeadlineSeconds = 30", "spec/paused = true")),
		workload("StatefulSet", "apps/v1", selector+"\n  serviceName: NAME"+podTemplate, replicas, labels,
			dim("update strategy", "", "spec/updateStrategy = {type: OnDelete}", "spec/updateStrategy = {type: RollingUpdate}", "spec/updateStrategy = {rollingUpdate: {partition: 2}}", "spec/updateStrategy = {}"),
			dim("retention", "", "spec/persistentVolumeClaimRetentionPolicy = {whenDeleted: Delete}", "spec/persistentVolumeClaimRetentionPolicy = {whenScaled: Delete, whenDeleted: Retain}"),
			dim("ordinals", "", "spec/ordinals = {start: 3}", "spec/minReadySeconds = 2")),
		workload("DaemonSet", "apps/v1", selector+podTemplate, labels,
			dim("update strategy", "", "spec/updateStrategy = {type: OnDelete}", "spec/updateStrategy = {type: RollingUpdate}", "spec/updateStrategy = {rollingUpdate: {maxUnavailable: 2}}",
				"spec/updateStrategy = {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}", "spec/updateStrategy = {}"),
			dim("pace", "", "spec/minReadySeconds = 5", "spec/revisionHistoryLimit = 2")),
		workload("ReplicaSet", "apps/v1", selector+podTemplate, replicas, labels, dim("pace", "", "spec/minReadySeconds = 5")),
		workload("ReplicationController", "v1", "\n  selector: {app: NAME}"+podTemplate, replicas, labels, dim("pace", "", "spec/minReadySeconds = 5")),
	}
	return append(all, jobs()...)
}

func jobs() []*kind {
	inJob := strings.ReplaceAll(podTemplate, "\n  ", "\n      ") + "\n          restartPolicy: Never"
	return []*kind{
		{
			name:       "CronJob",
			base:       "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: NAME}\nspec:\n  schedule: \"0 0 * * *\"\n  jobTemplate:\n    spec:" + inJob,
			dimensions: append(cronDimensions(), podDimensions("spec/jobTemplate/spec/template/spec")...),
		},
		{
			name: "Job",
			base: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: NAME}\nspec:\n  suspend: true" + podTemplate + "\n      restartPolicy: Never",
			dimensions: []dimension{
				dim("parallelism", "", "spec/parallelism = 2", "spec/parallelism = 0"),
				dim("time to live", "", "spec/ttlSecondsAfterFinished = 1000", "spec/activeDeadlineSeconds = 100"),
				dim("suspended", "", "spec/suspend = false"),
				dim("image", "", "spec/template/spec/containers/[name=main]/image = other"),
			},
		},
		{
			name:       "PodTemplate",
			base:       "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: NAME}\ntemplate:\n  metadata: {labels: {app: NAME}}\n  spec:\n    containers: [{name: main, image: a}]",
			dimensions: podDimensions("template/spec"),
		},
		{
			name: "Pod",
			base: "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec:\n  automountServiceAccountToken: false\n  containers: [{name: main, image: a}]",
			dimensions: inPod("spec", []dimension{
				dim("image", "", "$C/image = b"),
				dim("recreated", "metadata/annotations/package-operator.run~1on-immutable = Recreate"), // so that no change is refused
				dim("env", "", "$C/env/[name=A] = {value: x}", "$C/env/[name=A] = {valueFrom: {secretKeyRef: {name: s, key: k}}}"),
				dim("second container", "", "$P/containers/[name=second] = {image: s}"),
				dim("deadline", "", "$P/activeDeadlineSeconds = 100"),
				dim("gates", "", "$P/schedulingGates = [{name: example.com/a}]"),
				dim("liveness", append([]string{""}, handlers("livenessProbe")...)...),
				dim("volume", append([]string{""}, volumes()...)...),
			}),
		},
	}
}

func cronDimensions() []dimension {
	return []dimension{
		dim("schedule", "", "spec/schedule = \"5 * * * *\"", "spec/timeZone = Etc/UTC"),
		dim("concurrency", "", "spec/concurrencyPolicy = Forbid", "spec/suspend = true"),
		dim("limits", "", "spec/jobTemplate/spec/backoffLimit = 3", "spec/jobTemplate/spec/ttlSecondsAfterFinished = 7", "spec/successfulJobsHistoryLimit = 1"),
		dim("failure policy", "",
			"spec/jobTemplate/spec/podFailurePolicy = {rules: [{action: FailJob, onExitCodes: {operator: In, values: [42]}}]}",
			"spec/jobTemplate/spec/podFailurePolicy = {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: \"True\"}]}]}"),
		dim("completion", "", "spec/jobTemplate/spec/completionMode = Indexed\nspec/jobTemplate/spec/completions = 3", "spec/jobTemplate/spec/completions = 2",
			"spec/jobTemplate/spec/completionMode = Indexed\nspec/jobTemplate/spec/completions = 3\nspec/jobTemplate/spec/backoffLimitPerIndex = 1"),
	}
}
