package render

import (
	"encoding/json"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
)

// Context returns the context of templates and expressions. Numbers are float64.
func Context(pkg manifestsv1alpha1.TemplateContextPackage, env manifestsv1alpha1.PackageEnvironment,
	config map[string]any, images, dependencies map[string]string,
) (map[string]any, error) {
	if pkg.Metadata.Labels == nil {
		pkg.Metadata.Labels = map[string]string{}
	}
	if pkg.Metadata.Annotations == nil {
		pkg.Metadata.Annotations = map[string]string{}
	}
	value, err := jsonValues(map[string]any{
		"package": pkg, "environment": env, "config": config, "images": images, "dependencies": dependencies,
	})
	if err != nil {
		return nil, err
	}
	return value.(map[string]any), nil
}

// jsonValues turns a value into what it is after a round trip through JSON.
func jsonValues(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out any
	err = json.Unmarshal(data, &out)
	return out, err
}
