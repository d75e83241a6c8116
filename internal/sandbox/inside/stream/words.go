package stream

// PortsWord, as the first of Serve's words, says that connections to the ports
// behind it go through the tunnel: to what OpenPorts was told on the host.
const PortsWord = "tunnel"
