package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

// keys are the certificates of one cluster, in a folder.
type keys struct {
	dir    string
	ca     *x509.Certificate
	caKey  crypto.Signer
	serial int64
}

// newKeys makes an authority, the API server's certificate and the key that signs
// tokens of service accounts.
func newKeys(dir string, addresses ...net.IP) (*keys, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	k := &keys{dir: dir}
	ca := &x509.Certificate{
		Subject: pkix.Name{CommonName: "lab"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	var err error
	if k.ca, k.caKey, err = k.issue("ca", ca); err != nil {
		return nil, err
	}
	server := &x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, IPAddresses: addresses, DNSNames: []string{"localhost", "kubernetes.default.svc"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if _, _, err := k.issue("apiserver", server); err != nil {
		return nil, err
	}
	_, err = k.key("accounts")
	return k, err
}

func (k *keys) path(name string) string { return filepath.Join(k.dir, name) }

// issue writes name.crt and name.key. The authority signs itself.
func (k *keys) issue(name string, c *x509.Certificate) (*x509.Certificate, crypto.Signer, error) {
	key, err := k.key(name)
	if err != nil {
		return nil, nil, err
	}
	k.serial++
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(k.serial), time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent, signer := k.ca, k.caKey
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate %s: %w", name, err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	return made, key, os.WriteFile(k.path(name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
}

func (k *keys) key(name string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, os.WriteFile(k.path(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// client makes a certificate by which the API server knows a user and its groups.
func (k *keys) client(user string, groups ...string) (*tls.Config, error) {
	c := &x509.Certificate{
		Subject:  pkix.Name{CommonName: user, Organization: groups},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	made, key, err := k.issue(filepath.Base(user), c)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(k.ca)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{{Certificate: [][]byte{made.Raw}, PrivateKey: key}}}, nil
}

// kubeconfig writes a file by which a program is let in as a user that has a
// certificate, and returns its path.
func (k *keys) kubeconfig(user, server string) (string, error) {
	name := filepath.Base(user)
	type object = map[string]any
	b, err := yaml.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "lab",
		"clusters": []object{{"name": "lab", "cluster": object{"server": server, "certificate-authority": k.path("ca.crt")}}},
		"users":    []object{{"name": name, "user": object{"client-certificate": k.path(name + ".crt"), "client-key": k.path(name + ".key")}}},
		"contexts": []object{{"name": "lab", "context": object{"cluster": "lab", "user": name}}},
	})
	if err != nil {
		return "", err
	}
	path := k.path(name + ".kubeconfig")
	return path, os.WriteFile(path, b, 0o600)
}
