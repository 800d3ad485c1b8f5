package port

var _ Port = (*XSK)(nil)
