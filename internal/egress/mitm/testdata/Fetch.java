import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.security.KeyStore;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;

/** Speaks HTTPS to 127.0.0.1:PORT as if it were HOST, with Java's default trust. */
public class Fetch {
    public static void main(String[] args) throws Exception {
        Socket plain = new Socket(InetAddress.getLoopbackAddress(), Integer.parseInt(args[1]));
        SSLSocketFactory factory = (SSLSocketFactory) SSLSocketFactory.getDefault();
        try (SSLSocket tls = (SSLSocket) factory.createSocket(plain, args[0], 443, true)) {
            SSLParameters parameters = tls.getSSLParameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
            tls.setSSLParameters(parameters);
            tls.getOutputStream().write(("GET / HTTP/1.1\r\nHost: " + args[0] + "\r\nConnection: close\r\n\r\n").getBytes());
            InputStream in = tls.getInputStream();
            System.out.print(new String(in.readAllBytes()));
        }
    }
}
