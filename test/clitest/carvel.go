package clitest

// CarvelDocuments is a package in the format of kapp-controller's repositories.
const CarvelDocuments = `apiVersion: data.packaging.carvel.dev/v1alpha1
kind: PackageMetadata
metadata: {name: till.tools.example.com}
spec: {displayName: Till, shortDescription: Counts.}
---
apiVersion: data.packaging.carvel.dev/v1alpha1
kind: Package
metadata: {name: till.tools.example.com.1.0.0}
spec:
  refName: till.tools.example.com
  version: 1.0.0
  template: {spec: {fetch: [{imgpkgBundle: {image: "example.com/till@sha256:1111111111111111111111111111111111111111111111111111111111111111"}}], template: [{ytt: {}}], deploy: [{kapp: {}}]}}
`
