// The peer of the figures: a controller-runtime manager with the operator's own watches, metrics and lease, and nothing to do.
package main

import (
	"context"
	"os"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const namespace = "aicr-system"

func kind(group, version, kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	return object
}

func within(namespaces ...string) map[string]cache.Config {
	all := map[string]cache.Config{}
	for _, name := range namespaces {
		all[name] = cache.Config{}
	}
	return all
}

func selected(text string) labels.Selector {
	selector, err := labels.Parse(text)
	if err != nil {
		panic(err)
	}
	return selector
}

// watches are the operator's: see controllers/drive/src/watch/mod.rs.
func watches() map[client.Object]cache.ByObject {
	ours := selected("app.kubernetes.io/managed-by=aicr-operator")
	jobs := within("aicr-jobs", "aicr-discovery", "aicr-validation")
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	return map[client.Object]cache.ByObject{
		kind("operator.aicr.run", "v1alpha1", "ClusterRuntime"): {Field: named("cluster")},
		kind("operator.aicr.run", "v1alpha1", "RuntimeRollout"): {},
		kind("argoproj.io", "v1alpha1", "Application"):          {Namespaces: within("argocd"), Label: ours},
		kind("argoproj.io", "v1alpha1", "AppProject"):           {Namespaces: within("argocd"), Field: named("aicr")},
		&corev1.ConfigMap{}: {Namespaces: within(namespace), Label: selected("operator.aicr.run/role in (plan,snapshot,assessment,runs)")},
		&corev1.Node{}:      {},
		&batchv1.Job{}:      {Namespaces: jobs, Label: ours},
		&corev1.Pod{}:       {Namespaces: jobs, Label: selected("job-name")},
		crd:                 {Field: named("applications.argoproj.io")},
	}
}

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgo.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	byObject := watches()
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metrics.Options{BindAddress: os.Getenv("PEER_METRICS")},
		LeaderElection:          true,
		LeaderElectionID:        "aicr-peer",
		LeaderElectionNamespace: namespace,
		Cache:                   cache.Options{ByObject: byObject, DefaultTransform: cache.TransformStripManagedFields()},
	})
	if err != nil {
		panic(err)
	}
	nothing := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	})
	builder := ctrl.NewControllerManagedBy(manager).Named("peer")
	for object := range byObject {
		builder = builder.WatchesRawSource(source.Kind(manager.GetCache(), object, &handler.EnqueueRequestForObject{}))
	}
	if err := builder.Complete(nothing); err != nil {
		panic(err)
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		panic(err)
	}
}
