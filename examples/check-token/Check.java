import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.security.MessageDigest;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

class Check {
  static JsonNode verify(String token, String secret) throws Exception {
    String[] parts = token.split("\\.", 3);
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(secret.getBytes("UTF-8"), "HmacSHA256"));
    byte[] expected = mac.doFinal((parts[0] + "." + parts[1]).getBytes("US-ASCII"));
    if (!MessageDigest.isEqual(expected, Base64.getUrlDecoder().decode(parts[2]))) {
      throw new SecurityException("wrong signature");
    }
    JsonNode claims = new ObjectMapper().readTree(Base64.getUrlDecoder().decode(parts[1]));
    if (!claims.path("iss").asText().equals("console-gateway") || !claims.path("aud").asText().equals("orders")) {
      throw new SecurityException("a token for another service");
    }
    if (System.currentTimeMillis() / 1000 > claims.path("exp").asLong() + 5) {
      throw new SecurityException("the token has expired");
    }
    return claims;
  }

  public static void main(String[] args) throws Exception {
    System.out.println(verify(args[0], System.getenv("JWT_SECRET")).path("preferred_username").asText());
  }
}
