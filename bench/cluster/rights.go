package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

var fenced = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Grant gives agents that are AgentUser the rights that the documentation says they need,
// and no others.
func (c *Cluster) Grant(ctx context.Context) error {
	root, err := projectRoot()
	if err != nil {
		return err
	}
	page := filepath.Join(root, "docs/how-to/run-in-a-cluster.md")
	b, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	docs := fenced.FindAllStringSubmatch(string(b), -1)
	if len(docs) != 2 {
		return fmt.Errorf("%s: %d YAML documents, want role and binding", page, len(docs))
	}
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	if err := yaml.UnmarshalStrict([]byte(docs[0][1]), &role); err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	if err := yaml.UnmarshalStrict([]byte(docs[1][1]), &binding); err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: AgentUser}}
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	if err := c.API.Create(ctx, rbac+"clusterroles", &role, nil); err != nil {
		return err
	}
	return c.API.Create(ctx, rbac+"clusterrolebindings", &binding, nil)
}
