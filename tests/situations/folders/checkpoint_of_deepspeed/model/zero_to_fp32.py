# joins the parts
