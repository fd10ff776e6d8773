"""The only place that touches Streamlit's insides."""
