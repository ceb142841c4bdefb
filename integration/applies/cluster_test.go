package applies_test

func clusterKinds() []*kind {
	return append(admission(), []*kind{{
		name: "StorageClass",
		base: "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: NAME}\nprovisioner: none",
		dimensions: []dimension{
			dim("expansion", "", "allowVolumeExpansion = true", "mountOptions = [a]", "allowVolumeExpansion = false"),
			dim("topologies", "", "allowedTopologies = [{matchLabelExpressions: [{key: a, values: [b]}]}]"),
			dim("parameters", "", "parameters = {a: b}"),
		},
	}, {
		name: "CSIDriver",
		base: "apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: NAME}\nspec: {attachRequired: false}",
		dimensions: []dimension{
			dim("requests", "", "spec/tokenRequests = [{audience: a}]", "spec/tokenRequests = [{audience: b, expirationSeconds: 700}]", "spec/requiresRepublish = true"),
			dim("capacity", "", "spec/storageCapacity = true", "spec/seLinuxMount = true"),
			dim("pod info", "", "spec/podInfoOnMount = true"),
		},
	}, {
		name: "PriorityClass",
		base: "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: NAME}\nvalue: 1",
		dimensions: []dimension{
			dim("description", "", "description = first", "description = second"),
			dim("value", "", "value = 2", "preemptionPolicy = Never"),
		},
	}, {
		name: "RuntimeClass",
		base: "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: NAME}\nhandler: h",
		dimensions: []dimension{
			dim("scheduling", "", "scheduling = {nodeSelector: {a: b}}", "scheduling = {tolerations: [{key: a, operator: Exists}]}", "scheduling = {}"),
			dim("overhead", "", "overhead = {podFixed: {cpu: 1m}}", "overhead = {podFixed: {memory: 1Mi}}"),
		},
	}, {
		name: "ResourceClaimTemplate",
		base: "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: NAME}\nspec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: c}}]}}}",
		dimensions: []dimension{
			dim("claim", "", "spec/spec/devices/requests = [{name: b, firstAvailable: [{name: c, deviceClassName: c}]}]"),
		},
	}, {
		name: "DeviceClass",
		base: "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: NAME}\nspec: {}",
		dimensions: []dimension{
			dim("selectors", "", "spec/selectors = [{cel: {expression: \"true\"}}]", "spec/selectors = [{cel: {expression: \"false\"}}]"),
			dim("config", "", "spec/config = [{opaque: {driver: d.example.com, parameters: {a: b}}}]"),
		},
	}}...)
}

func admission() []*kind {
	webhooks := func(kind string) *kindOfWebhook {
		return &kindOfWebhook{kind}
	}
	return []*kind{
		webhooks("ValidatingWebhookConfiguration").kind(),
		webhooks("MutatingWebhookConfiguration").kind(),
		{
			name: "ValidatingAdmissionPolicy",
			base: "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: NAME}\nspec: {matchConstraints: {resourceRules: [{apiGroups: [none], apiVersions: [v1], operations: [CREATE], resources: [none]}]}, validations: [{expression: \"true\"}]}",
			dimensions: []dimension{
				dim("validations", "", "spec/validations = [{expression: \"1 == 1\", message: no}]", "spec/validations = [{expression: \"true\", messageExpression: \"'no'\"}, {expression: \"false\"}]"),
				dim("parameters", "", "spec/paramKind = {apiVersion: v1, kind: ConfigMap}", "spec/paramKind = {apiVersion: v1, kind: Secret}"),
				dim("policy", "", "spec/failurePolicy = Ignore", "spec/failurePolicy = Fail"),
				dim("conditions", "", "spec/matchConditions = [{name: a, expression: \"true\"}]", "spec/matchConditions = [{name: b, expression: \"true\"}]"),
				dim("audit", "", "spec/auditAnnotations = [{key: k, valueExpression: \"'v'\"}]", "spec/variables = [{name: v, expression: \"1\"}]"),
			},
		},
		{
			name: "ValidatingAdmissionPolicyBinding",
			base: "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: NAME}\nspec: {policyName: none, validationActions: [Deny]}",
			dimensions: []dimension{
				dim("actions", "", "spec/validationActions = [Warn, Audit]", "spec/validationActions = [Audit]"),
				dim("parameter", "", "spec/paramRef = {name: p, parameterNotFoundAction: Deny}", "spec/paramRef = {selector: {matchLabels: {a: b}}, parameterNotFoundAction: Allow}", "spec/paramRef = {name: p, namespace: default, parameterNotFoundAction: Deny}"),
				dim("match", "", "spec/matchResources = {namespaceSelector: {matchLabels: {a: b}}}", "spec/matchResources = {matchPolicy: Exact}", "spec/matchResources = {}"),
			},
		},
	}
}

// kindOfWebhook is one of the two configurations of webhooks.
type kindOfWebhook struct{ name string }

func (w *kindOfWebhook) kind() *kind {
	const ca = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJkVENDQVJ1Z0F3SUJBZ0lVUXc9PQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg=="
	hook := "webhooks/[name=a.example.com]"
	return &kind{
		name: w.name,
		base: "apiVersion: admissionregistration.k8s.io/v1\nkind: " + w.name + "\nmetadata: {name: NAME}\nwebhooks: [{name: a.example.com, sideEffects: None, admissionReviewVersions: [v1], failurePolicy: Ignore, clientConfig: {service: {name: s, namespace: default}}, rules: [{apiGroups: [none], apiVersions: [v1], operations: [CREATE], resources: [none]}]}]",
		dimensions: []dimension{
			dim("client", "", hook+"/clientConfig = {url: \"https://a.example.com\"}", hook+"/clientConfig = {service: {name: s, namespace: default, path: /p, port: 8443}}"),
			dim("rules", "", hook+"/rules = [{apiGroups: [none], apiVersions: [v2], operations: [UPDATE, CREATE], resources: [a, b], scope: Namespaced}]", hook+"/rules = []"),
			dim("policy", "", hook+"/failurePolicy = Fail", hook+"/timeoutSeconds = 3", hook+"/matchPolicy = Exact"),
			dim("selector", "", hook+"/namespaceSelector = {matchLabels: {a: b}}", hook+"/objectSelector = {matchExpressions: [{key: a, operator: Exists}]}", hook+"/namespaceSelector = {}"),
			dim("conditions", "", hook+"/matchConditions = [{name: a, expression: \"true\"}]", hook+"/matchConditions = [{name: b, expression: \"true\"}]"),
			dim("second", "", "webhooks/[name=b.example.com] = {sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: \"https://b.example.com\"}}"),
			hand("injected authority", hook+"/clientConfig/caBundle = "+ca),
		},
	}
}
