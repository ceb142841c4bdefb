package applies_test

import "strings"

func policyKinds() []*kind {
	return append(autoscalers(), rights()...)
}

func autoscalers() []*kind {
	metric := func(metrics ...string) string { return "spec/metrics = [" + strings.Join(metrics, ", ") + "]" }
	cpu := "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}"
	return []*kind{{
		name: "PodDisruptionBudget",
		base: "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: NAME}\nspec: {selector: {matchLabels: {app: NAME}}}",
		dimensions: []dimension{
			dim("bound", "", "spec/minAvailable = 1", "spec/maxUnavailable = 1", "spec/minAvailable = 50%", "spec/maxUnavailable = 0"),
			dim("selector", "", "spec/selector = {}", "spec/selector = {matchLabels: {b: c}}"),
			dim("eviction", "", "spec/unhealthyPodEvictionPolicy = AlwaysAllow", "spec/unhealthyPodEvictionPolicy = IfHealthyBudget"),
		},
	}, {
		name: "HorizontalPodAutoscaler",
		base: "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: NAME}\nspec: {maxReplicas: 8, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}}",
		dimensions: []dimension{
			dim("metrics", "", metric(cpu),
				metric("{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 1}}}"),
				metric("{type: Pods, pods: {metric: {name: m}, target: {type: AverageValue, averageValue: 1}}}"),
				metric("{type: Object, object: {metric: {name: m}, describedObject: {kind: Service, name: s}, target: {type: Value, value: 1}}}"),
				metric("{type: External, external: {metric: {name: m, selector: {matchLabels: {a: b}}}, target: {type: Value, value: 1}}}"),
				metric("{type: ContainerResource, containerResource: {name: cpu, container: main, target: {type: Utilization, averageUtilization: 50}}}", cpu)),
			dim("behavior", "", "spec/behavior = {}", "spec/behavior = {scaleDown: {stabilizationWindowSeconds: 60}}", "spec/behavior = {scaleUp: {selectPolicy: Disabled}}",
				"spec/behavior = {scaleDown: {policies: [{type: Pods, value: 1, periodSeconds: 60}]}}"),
			dim("bounds", "", "spec/minReplicas = 2", "spec/maxReplicas = 9"),
			dim("target", "", "spec/scaleTargetRef = {apiVersion: apps/v1, kind: StatefulSet, name: other}"),
			hand("foreign bounds", "spec/minReplicas = 3"),
		},
	}, {
		name: "HorizontalPodAutoscaler/v1",
		base: "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: NAME}\nspec: {maxReplicas: 8, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}}",
		dimensions: []dimension{
			dim("target", "", "spec/targetCPUUtilizationPercentage = 50", "spec/targetCPUUtilizationPercentage = 60"),
			dim("bounds", "", "spec/minReplicas = 2", "spec/maxReplicas = 9"),
			dim("version", "", "apiVersion = autoscaling/v2", "apiVersion = autoscaling/v2\n"+metric(cpu)),
		},
	}, {
		name: "PriorityLevelConfiguration",
		base: "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {name: NAME}\nspec: {type: Limited, limited: {nominalConcurrencyShares: 1, limitResponse: {type: Reject}}}",
		dimensions: []dimension{
			dim("response", "", "spec/limited/limitResponse = {type: Queue, queuing: {queues: 8, handSize: 2, queueLengthLimit: 9}}", "spec/limited/limitResponse = {type: Queue, queuing: {queues: 4, handSize: 1, queueLengthLimit: 9}}"),
			dim("shares", "", "spec/limited/nominalConcurrencyShares = 2", "spec/limited/lendablePercent = 5", "spec/limited/borrowingLimitPercent = 5"),
		},
	}, {
		name: "FlowSchema",
		base: "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: NAME}\nspec: {priorityLevelConfiguration: {name: none}}",
		dimensions: []dimension{
			dim("rules", "", "spec/rules = [{subjects: [{kind: User, user: {name: nobody}}], nonResourceRules: [{verbs: [get], nonResourceURLs: [/none]}]}]",
				"spec/rules = [{subjects: [{kind: Group, group: {name: nobody}}], resourceRules: [{verbs: [get], apiGroups: [none], resources: [none], clusterScope: true}]}]",
				"spec/rules = [{subjects: [{kind: ServiceAccount, serviceAccount: {name: n, namespace: n}}], resourceRules: [{verbs: [get], apiGroups: [none], resources: [none], namespaces: [n]}]}]"),
			dim("distinguisher", "", "spec/distinguisherMethod = {type: ByUser}", "spec/distinguisherMethod = {type: ByNamespace}"),
			dim("precedence", "", "spec/matchingPrecedence = 9000"),
		},
	}}
}

func rights() []*kind {
	rules := dim("rules", "", "rules = [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]", "rules = [{apiGroups: [\"\"], resources: [pods], verbs: [get, list]}, {apiGroups: [apps], resources: [deployments], resourceNames: [a], verbs: [get]}]", "rules = []")
	subjects := dim("subjects", "", "subjects = [{kind: ServiceAccount, name: a, namespace: default}]", "subjects = [{kind: User, name: a}]", "subjects = [{kind: Group, name: a}, {kind: User, name: b}]")
	const binding = "\nmetadata: {name: NAME}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: none}"
	role := dim("role", "", "roleRef/name = other")
	return []*kind{
		{name: "Role", base: "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: NAME}", dimensions: []dimension{rules}},
		{name: "ClusterRole", base: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NAME}", dimensions: []dimension{rules, dim("url", "", "rules = [{nonResourceURLs: [/none], verbs: [get]}]")}},
		{
			name: "ClusterRole/aggregated",
			base: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NAME}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {NAME: \"true\"}}]}",
			dimensions: []dimension{
				dim("rules", "", "rules = []"),
				dim("selectors", "", "aggregationRule/clusterRoleSelectors = [{matchLabels: {other: NAME}}]"),
				controller("clusterrole-aggregation-controller", "aggregated", "rules = [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]"),
			},
		},
		{
			name: "ClusterRole/left",
			base: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NAME}",
			dimensions: []dimension{
				dim("aggregation", "", "aggregationRule = {clusterRoleSelectors: [{matchLabels: {NAME: \"true\"}}]}", "rules = [{apiGroups: [\"\"], resources: [pods], verbs: [list]}]"),
				controller("clusterrole-aggregation-controller", "aggregated", "rules = [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]"),
			},
		},
		{name: "RoleBinding", base: "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding" + binding, dimensions: []dimension{subjects, role}},
		{name: "ClusterRoleBinding", base: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding" + binding, dimensions: []dimension{subjects}},
	}
}
