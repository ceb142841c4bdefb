package applies_test

func networkKinds() []*kind {
	return []*kind{service(), ingress(), networkPolicy(), {
		name: "EndpointSlice",
		base: "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: NAME}\naddressType: IPv4\nendpoints: []",
		dimensions: []dimension{
			dim("ports", "", "ports = [{name: a, port: 80}]", "ports = [{name: a, port: 81, protocol: UDP}, {name: b, port: 82}]", "ports = [{name: a, port: 80, appProtocol: http}]"),
			dim("endpoints", "", "endpoints = [{addresses: [192.0.2.1]}]", "endpoints = [{addresses: [192.0.2.1], conditions: {ready: false}, zone: a}]"),
		},
	}, {
		name: "IngressClass",
		base: "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: NAME}\nspec: {controller: example.com/c}",
		dimensions: []dimension{
			dim("parameters", "", "spec/parameters = {kind: Params, name: p}", "spec/parameters = {apiGroup: g.example.com, kind: Params, name: p, scope: Namespace, namespace: default}"),
		},
	}}
}

func service() *kind {
	return &kind{
		name: "Service",
		base: "apiVersion: v1\nkind: Service\nmetadata: {name: NAME}\nspec: {selector: {app: NAME}, ports: [{name: http, port: 80, targetPort: 8080}]}",
		dimensions: []dimension{
			dim("ports", "", "spec/ports = [{name: http, port: 8080, targetPort: 8080}]", "spec/ports = [{name: http, port: 80}, {name: metrics, port: 9090}]",
				"spec/ports = [{name: dns, port: 53}, {name: dns-udp, port: 53, protocol: UDP}]", "spec/ports = [{name: http, port: 80, protocol: UDP}]",
				"spec/ports = [{port: 80}]", "spec/ports = [{name: web, port: 80, targetPort: http, appProtocol: kubernetes.io/h2c}]"),
			dim("type", "", "spec/type = NodePort", "spec/type = LoadBalancer", "spec/type = ExternalName\nspec/externalName = example.com", "spec/type = ClusterIP", "spec/clusterIP = None"),
			dim("affinity", "", "spec/sessionAffinity = ClientIP", "spec/sessionAffinity = ClientIP\nspec/sessionAffinityConfig = {clientIP: {timeoutSeconds: 5}}", "spec/sessionAffinity = None"),
			dim("policy", "", "spec/internalTrafficPolicy = Local", "spec/trafficDistribution = PreferClose", "spec/publishNotReadyAddresses = true"),
			dim("families", "", "spec/ipFamilyPolicy = SingleStack", "spec/ipFamilyPolicy = PreferDualStack"),
			dim("selector", "", "spec/selector = {other: NAME}", "spec/selector/tier = a", "spec/selector = {}"),
			dim("addresses", "", "spec/externalIPs = [192.0.2.1]", "spec/externalIPs = [192.0.2.2, 192.0.2.1]"),
			hand("foreign port", "spec/ports/[name=theirs] = {port: 7070}"),
			hand("foreign load balancer", "spec/type = LoadBalancer\nspec/loadBalancerClass = example.com/theirs", "spec/externalTrafficPolicy = Local\nspec/type = NodePort"),
		},
	}
}

func ingress() *kind {
	backend := func(b string) string {
		return "spec/rules = [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {" + b + "}}]}}]"
	}
	return &kind{
		name: "Ingress",
		base: "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: NAME}\nspec: {defaultBackend: {service: {name: a, port: {number: 80}}}}",
		dimensions: []dimension{
			dim("default backend", "", "spec/defaultBackend = {service: {name: a, port: {name: http}}}", "spec/defaultBackend = {resource: {kind: Bucket, name: b}}",
				"spec/defaultBackend = {resource: {apiGroup: g.example.com, kind: Bucket, name: b}}"),
			dim("rules", "", backend("service: {name: a, port: {number: 80}}"), backend("service: {name: a, port: {name: http}}"), backend("resource: {kind: Bucket, name: b}"),
				"spec/rules = [{host: b.example.com}]"),
			dim("tls", "", "spec/tls = [{hosts: [a.example.com], secretName: s}]", "spec/tls = [{hosts: [a.example.com]}]"),
			dim("class", "", "spec/ingressClassName = a", "spec/ingressClassName = b"),
			hand("foreign class", "spec/ingressClassName = theirs"),
		},
	}
}

func networkPolicy() *kind {
	return &kind{
		name: "NetworkPolicy",
		base: "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: NAME}\nspec: {podSelector: {}}",
		dimensions: []dimension{
			dim("selector", "", "spec/podSelector = {matchLabels: {a: b}}", "spec/podSelector = {matchExpressions: [{key: a, operator: Exists}]}"),
			dim("ingress", "", "spec/ingress = [{from: [{podSelector: {}}]}]", "spec/ingress = [{from: [{ipBlock: {cidr: 192.0.2.0/24, except: [192.0.2.1/32]}}]}]",
				"spec/ingress = [{from: [{namespaceSelector: {matchLabels: {a: b}}, podSelector: {}}]}]", "spec/ingress = [{}]", "spec/ingress = []",
				"spec/ingress = [{ports: [{port: 80}, {port: web, protocol: UDP}, {port: 90, endPort: 99}]}]"),
			dim("egress", "", "spec/egress = [{}]\nspec/policyTypes = [Ingress, Egress]", "spec/egress = []\nspec/policyTypes = [Ingress, Egress]", "spec/egress = [{}]", "spec/egress = []",
				"spec/policyTypes = [Ingress, Egress]", "spec/policyTypes = [Egress]"),
		},
	}
}
